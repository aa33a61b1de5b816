package main

import (
	"errors"
	"fmt"
	"log"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

// controller is one controller process. It acts by what stands in ZooKeeper: it reads everything, takes
// the first step that is due, and begins again, until none is due. Its memory holds only what it has
// announced in its term, which a new term announces again, and where a drop is due.
type controller struct {
	id      int
	conn    *zk.Conn
	chroot  string
	brokers *brokers
	wake    chan struct{}
	asks    chan chan bool
	over    chan struct{}
	ended   chan struct{}

	mutex sync.Mutex
	armed map[string]bool
	acted bool

	epoch        int
	epochVersion int32
	announced    map[key]string
	completing   map[key]string
	changed      map[key]bool // where a drop is due
	heard        map[string]string
}

func startController(id int, hosts, chroot string, brokers *brokers) (*controller, error) {
	c := &controller{
		id: id, chroot: chroot, brokers: brokers,
		wake: make(chan struct{}, 1), asks: make(chan chan bool, 16),
		over: make(chan struct{}), ended: make(chan struct{}), armed: map[string]bool{},
	}
	conn, err := connect(hosts, c.see)
	if err != nil {
		return nil, err
	}
	c.conn = conn
	go c.run()
	return c, nil
}

// see notes that something changed; the watch that told has to be set again.
func (c *controller) see(event zk.Event) {
	c.mutex.Lock()
	delete(c.armed, event.Path)
	c.mutex.Unlock()
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// arm says whether a watch is to be set on a path.
func (c *controller) arm(path string) bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	if c.armed[path] {
		return false
	}
	c.armed[path] = true
	return true
}

func (c *controller) acts() bool {
	c.mutex.Lock()
	defer c.mutex.Unlock()
	return c.acted
}

func (c *controller) end() {
	close(c.over)
	<-c.ended
}

// ask returns where it will be said whether this controller acts, once nothing is left to do.
func (c *controller) ask() <-chan bool {
	answer := make(chan bool, 1)
	c.asks <- answer
	return answer
}

func (c *controller) run() {
	defer close(c.ended)
	defer c.conn.Close()
	for {
		select {
		case <-c.over:
			return
		case <-c.wake:
			c.work()
		case answer := <-c.asks:
			c.work()
			answer <- c.acts()
		}
	}
}

// work takes every step that is due.
func (c *controller) work() {
	for {
		select {
		case <-c.over:
			return
		default:
		}
		again, err := c.step()
		c.mutex.Lock()
		c.acted = c.epoch != 0
		c.mutex.Unlock()
		if err != nil && !isConflict(err) {
			log.Printf("controller %d: %v", c.id, err)
			return
		}
		if err == nil && !again {
			return
		}
	}
}

// isConflict says whether something was not as it had been read: read again, decide again.
func isConflict(err error) bool {
	for _, each := range []error{zk.ErrBadVersion, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNotEmpty} {
		if errors.Is(err, each) {
			return true
		}
	}
	return false
}

// read returns content and stat of a znode, nil where it is not there, and watches it.
func (c *controller) read(path string) ([]byte, *zk.Stat, error) {
	path = c.chroot + path
	if c.arm(path) {
		there, _, _, err := c.conn.ExistsW(path)
		if err != nil || !there {
			return nil, nil, err
		}
	}
	data, stat, err := c.conn.Get(path)
	if err == zk.ErrNoNode {
		return nil, nil, nil
	}
	return data, stat, err
}

func (c *controller) children(path string) ([]string, error) {
	path = c.chroot + path
	var names []string
	var err error
	if c.arm(path) {
		names, _, _, err = c.conn.ChildrenW(path)
		if err == zk.ErrNoNode {
			_, _, _, err = c.conn.ExistsW(path)
		}
	} else if names, _, err = c.conn.Children(path); err == zk.ErrNoNode {
		err = nil
	}
	slices.Sort(names)
	return names, err
}

// write commits operations, if this controller's term is not over.
func (c *controller) write(operations ...any) error {
	check := &zk.CheckVersionRequest{Path: c.chroot + "/controller_epoch", Version: c.epochVersion}
	_, err := c.conn.Multi(append([]any{check}, operations...)...)
	return err
}

func (c *controller) create(path string, data []byte) any {
	return &zk.CreateRequest{Path: c.chroot + path, Data: data, Acl: everybody}
}

func (c *controller) set(path string, data []byte, version int32) any {
	return &zk.SetDataRequest{Path: c.chroot + path, Data: data, Version: version}
}

func (c *controller) delete(path string, version int32) any {
	return &zk.DeleteRequest{Path: c.chroot + path, Version: version}
}

// hold says whether this controller acts; where nobody does it contends.
func (c *controller) hold() (bool, error) {
	if _, err := c.conn.Sync(c.chroot + "/controller"); err != nil {
		return false, err
	}
	_, owner, err := c.read("/controller")
	if err != nil {
		return false, err
	}
	_, counted, err := c.read("/controller_epoch")
	if err != nil {
		return false, err
	}
	if owner != nil {
		mine := owner.EphemeralOwner == c.conn.SessionID() && c.epoch != 0
		if !mine || counted == nil || counted.Version != c.epochVersion {
			c.epoch = 0
			return false, nil
		}
		return true, nil
	}
	return false, c.contend()
}

var roots = []string{
	"/brokers/ids", "/brokers/topics", "/config/topics", "/config/brokers",
	"/admin/reassignment_requests", "/admin/reassignments",
}

// ensure makes a znode where it lacks.
func (c *controller) ensure(path string, data []byte) error {
	there, _, err := c.conn.Exists(c.chroot + path)
	if err != nil || there {
		return err
	}
	_, err = c.conn.Create(c.chroot+path, data, 0, everybody)
	if err == zk.ErrNodeExists {
		return nil
	}
	return err
}

func (c *controller) contend() error {
	c.epoch = 0
	for _, root := range roots {
		for at := 1; at <= len(root); at++ {
			if at < len(root) && root[at] != '/' {
				continue
			}
			if err := c.ensure(root[:at], nil); err != nil {
				return err
			}
		}
	}
	if err := c.ensure("/controller_epoch", []byte("0")); err != nil {
		return err
	}
	epochs := c.chroot + "/controller_epoch"
	data, stat, err := c.conn.Get(epochs)
	if err != nil {
		return err
	}
	var epoch int
	if _, err := fmt.Sscanf(string(data), "%d", &epoch); err != nil {
		return fmt.Errorf("%s holds %q: %w", epochs, data, err)
	}
	me := fmt.Sprintf(`{"version":1,"brokerid":%d,"timestamp":"%d"}`, c.id, time.Now().UnixMilli())
	_, err = c.conn.Multi(
		&zk.CreateRequest{
			Path: c.chroot + "/controller", Data: []byte(me), Acl: everybody, Flags: zk.FlagEphemeral,
		},
		&zk.SetDataRequest{Path: epochs, Data: []byte(fmt.Sprint(epoch + 1)), Version: stat.Version},
	)
	if err != nil {
		return err
	}
	c.epoch, c.epochVersion = epoch+1, stat.Version+1
	c.announced, c.completing = map[key]string{}, map[key]string{}
	c.changed, c.heard = map[key]bool{}, map[string]string{}
	return zk.ErrNodeExists // read again: now there is a controller
}

// step takes the first step that is due, and says whether there was one.
func (c *controller) step() (bool, error) {
	acts, err := c.hold()
	if err != nil || !acts {
		return false, err
	}
	w, err := c.look()
	if err != nil {
		return false, err
	}
	for _, take := range []func(*world) (bool, error){
		c.tidy, c.bringOnline, c.replaceDead, c.tell, c.takeUp, c.move,
	} {
		if taken, err := take(w); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

// world is all that stands in ZooKeeper.
type world struct {
	live       map[int]int64 // by broker, what tells this life from its others
	known      map[int]bool
	topics     map[string]*topic
	partitions map[key]*partition
	order      []key
	foreign    []string // records that cannot be any, and parents without records
	requests   []string
}

type topic struct {
	raw      content
	version  int32
	assigned map[string][]int
	minISR   int
	records  int
}

type partition struct {
	topic    *topic
	assigned []int
	state    *state
	record   *record
}

func (w *world) alive(id int) bool {
	_, there := w.live[id]
	return there
}

// led says whether the leader is alive and in sync.
func (w *world) led(p *partition) bool {
	return p.state != nil && w.alive(p.state.leader) && slices.Contains(p.state.isr, p.state.leader)
}

func (c *controller) look() (*world, error) {
	w := &world{
		live: map[int]int64{}, known: map[int]bool{}, topics: map[string]*topic{},
		partitions: map[key]*partition{},
	}
	err := errors.Join(c.lookAtBrokers(w), c.lookAtTopics(w), c.lookAtRecords(w))
	if err != nil {
		return nil, err
	}
	w.requests, err = c.children("/admin/reassignment_requests")
	return w, err
}

func (c *controller) lookAtBrokers(w *world) error {
	names, err := c.children("/config/brokers")
	if err != nil {
		return err
	}
	live, err := c.children("/brokers/ids")
	if err != nil {
		return err
	}
	for _, name := range append(names, live...) {
		if id, ok := parsePartition(name); ok {
			w.known[id] = true
		}
	}
	for _, name := range live {
		_, stat, err := c.read("/brokers/ids/" + name)
		if err != nil {
			return err
		}
		if id, ok := parsePartition(name); ok && stat != nil {
			w.live[id] = stat.Czxid
		}
	}
	return nil
}

func (c *controller) lookAtTopics(w *world) error {
	names, err := c.children("/brokers/topics")
	if err != nil {
		return err
	}
	for _, name := range names {
		data, stat, err := c.read("/brokers/topics/" + name)
		if err != nil {
			return err
		}
		raw, err := decode(data)
		if err != nil || stat == nil {
			continue
		}
		t := &topic{raw: raw, version: stat.Version, assigned: map[string][]int{}}
		if err := raw.read("partitions", &t.assigned); err != nil {
			continue
		}
		if t.minISR, err = c.minISR(name); err != nil {
			return err
		}
		w.topics[name] = t
		for partitionName, assigned := range t.assigned {
			number, _ := parsePartition(partitionName)
			k := key{name, number}
			data, stat, err := c.read(k.statePath())
			if err != nil {
				return err
			}
			p := &partition{topic: t, assigned: assigned}
			if stat != nil {
				if p.state, err = decodeState(data, stat.Version); err != nil {
					return fmt.Errorf("%s: %w", k.statePath(), err)
				}
			}
			w.partitions[k] = p
			w.order = append(w.order, k)
		}
	}
	slices.SortFunc(w.order, func(a, b key) int {
		return strings.Compare(a.recordPath(), b.recordPath())
	})
	return nil
}

func (c *controller) minISR(topic string) (int, error) {
	for _, path := range []string{"/config/topics/" + topic, "/config/brokers/<default>"} {
		data, _, err := c.read(path)
		if err != nil {
			return 0, err
		}
		raw, err := decode(data)
		var settings map[string]string
		if err != nil || raw.read("config", &settings) != nil {
			continue
		}
		var least int
		if _, err := fmt.Sscanf(settings["min.insync.replicas"], "%d", &least); err == nil {
			return least, nil
		}
	}
	return 1, nil
}

func (c *controller) lookAtRecords(w *world) error {
	topics, err := c.children("/admin/reassignments")
	if err != nil {
		return err
	}
	for _, name := range topics {
		parent := "/admin/reassignments/" + name
		names, err := c.children(parent)
		if err != nil {
			return err
		}
		if len(names) == 0 {
			w.foreign = append(w.foreign, parent)
		}
		for _, child := range names {
			data, stat, err := c.read(parent + "/" + child)
			if err != nil {
				return err
			}
			number, ok := parsePartition(child)
			p := w.partitions[key{name, number}]
			if stat == nil {
				continue
			}
			r, err := decodeRecord(data, stat.Version)
			if !ok || p == nil || err != nil {
				w.foreign = append(w.foreign, parent+"/"+child)
				continue
			}
			p.record = r
			p.topic.records++
		}
	}
	return nil
}

// tidy removes what no reassignment could have written.
func (c *controller) tidy(w *world) (bool, error) {
	for _, path := range w.foreign {
		log.Printf("controller %d: %s is no record of a reassignment; removed", c.id, path)
		return true, c.write(c.delete(path, -1))
	}
	return false, nil
}

// bringOnline makes the state of a partition that has none.
func (c *controller) bringOnline(w *world) (bool, error) {
	for _, k := range w.order {
		p := w.partitions[k]
		live := w.living(p.assigned)
		if p.state != nil || len(live) == 0 {
			continue
		}
		s := state{leader: live[0], controllerEpoch: c.epoch, isr: live, raw: content{}}
		operations := []any{}
		for _, parent := range []string{
			"/brokers/topics/" + k.topic + "/partitions",
			fmt.Sprintf("/brokers/topics/%s/partitions/%d", k.topic, k.partition),
		} {
			_, stat, err := c.read(parent)
			if err != nil {
				return false, err
			}
			if stat == nil {
				operations = append(operations, c.create(parent, nil))
			}
		}
		return true, c.write(append(operations, c.create(k.statePath(), s.encode()))...)
	}
	return false, nil
}

func (w *world) living(from []int) []int {
	live := []int{}
	for _, id := range from {
		if w.alive(id) {
			live = append(live, id)
		}
	}
	return live
}

// replaceDead elects where the leader is gone, and takes the dead out of the in-sync set.
func (c *controller) replaceDead(w *world) (bool, error) {
	for _, k := range w.order {
		p := w.partitions[k]
		if p.state == nil {
			continue
		}
		leader, live := p.state.leader, w.living(p.state.isr)
		if !w.led(p) {
			leader = firstOf(p.assigned, live)
		}
		isr := live
		if leader < 0 {
			isr = p.state.isr
		}
		if leader != p.state.leader || len(isr) != len(p.state.isr) {
			return true, c.writeState(k, p, leader, isr)
		}
	}
	return false, nil
}

// firstOf returns the first of a list that is among others, -1 where none is.
func firstOf(list, others []int) int {
	for _, each := range list {
		if slices.Contains(others, each) {
			return each
		}
	}
	return -1
}

// writeState writes who leads and who is in sync, with the leader epoch raised.
func (c *controller) writeState(k key, p *partition, leader int, isr []int) error {
	next := *p.state
	next.leader, next.isr = leader, isr
	next.leaderEpoch++
	next.controllerEpoch = c.epoch
	return c.write(c.set(k.statePath(), next.encode(), p.state.version))
}

// tell tells each live assigned broker who leads and who is assigned, where it has not heard.
func (c *controller) tell(w *world) (bool, error) {
	for _, k := range w.order {
		p := w.partitions[k]
		if p.state == nil {
			continue
		}
		for _, id := range w.living(p.assigned) {
			about := fmt.Sprint(id, k)
			news := fmt.Sprint(w.live[id], p.state.version, p.assigned)
			if c.heard[about] != news && c.brokers.lead(id, k, p.state, p.assigned) {
				c.heard[about] = news
			}
		}
	}
	return false, nil
}
