package main

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const sessionTimeout = 20 * time.Second

var everybody = zk.WorldACL(zk.PermAll)

// silent keeps the client's log from where the program's own stands.
type silent struct{}

func (silent) Printf(string, ...interface{}) {}

func connect(hosts string, see zk.EventCallback) (*zk.Conn, error) {
	conn, events, err := zk.Connect(
		[]string{hosts}, sessionTimeout, zk.WithLogger(silent{}), zk.WithEventCallback(see),
	)
	if err != nil {
		return nil, err
	}
	limit := time.After(10 * time.Second)
	for {
		select {
		case event := <-events:
			if event.State == zk.StateHasSession {
				return conn, nil
			}
		case <-limit:
			conn.Close()
			return nil, fmt.Errorf("no session at %s", hosts)
		}
	}
}

// told is what a broker was last told of a partition.
type told struct {
	state    *state
	assigned []int
}

// broker is one broker: its session, and what it was told in this life.
type broker struct {
	conn  *zk.Conn
	knows map[key]told
}

// brokers are those of one cluster. A message is a call.
type brokers struct {
	mutex         sync.Mutex
	hosts, chroot string
	up            map[int]*broker
}

func newBrokers(hosts, chroot string) *brokers {
	return &brokers{hosts: hosts, chroot: chroot, up: map[int]*broker{}}
}

func (b *brokers) start(id int) error {
	conn, err := connect(b.hosts, nil)
	if err != nil {
		return err
	}
	settings := fmt.Sprintf("%s/config/brokers/%d", b.chroot, id)
	_, err = conn.Create(settings, []byte(`{"version":1,"config":{}}`), 0, everybody)
	if err != nil && err != zk.ErrNodeExists {
		return err
	}
	b.mutex.Lock()
	b.up[id] = &broker{conn: conn, knows: map[key]told{}}
	b.mutex.Unlock()
	address := fmt.Sprintf(
		`{"version":4,"host":"127.0.0.1","port":%d,"jmx_port":-1,"timestamp":"%d",`+
			`"endpoints":["PLAINTEXT://127.0.0.1:%d"],`+
			`"listener_security_protocol_map":{"PLAINTEXT":"PLAINTEXT"}}`,
		9092+id, time.Now().UnixMilli(), 9092+id,
	)
	path := fmt.Sprintf("%s/brokers/ids/%d", b.chroot, id)
	_, err = conn.Create(path, []byte(address), zk.FlagEphemeral, everybody)
	return err
}

// stop lets a broker die: its session ends, and its registration with it.
func (b *brokers) stop(id int) string {
	b.mutex.Lock()
	gone := b.up[id]
	delete(b.up, id)
	b.mutex.Unlock()
	if gone == nil {
		return refused
	}
	gone.conn.Close()
	return done
}

func (b *brokers) stopAll() {
	for id := range b.up {
		b.stop(id)
	}
}

// lead tells a broker who leads a partition and who is assigned; it says whether it heard.
//
// What the controller read before the broker's own last write is no news to it.
func (b *brokers) lead(id int, k key, s *state, assigned []int) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	one := b.up[id]
	if one == nil {
		return false
	}
	if known, there := one.knows[k]; !there || s.version >= known.state.version {
		one.knows[k] = told{s, assigned}
	}
	return true
}

// drop tells a broker to stop its replica.
func (b *brokers) drop(id int, k key) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if one := b.up[id]; one != nil {
		delete(one.knows, k)
	}
}

// changeISR has the leader, as far as it was told that it is, take a replica in or let it go.
func (b *brokers) changeISR(replica int, k key, joins bool) string {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	for id, one := range b.up {
		known, there := one.knows[k]
		if !there || known.state.leader != id {
			continue
		}
		next := *known.state
		within := slices.Contains(next.isr, replica)
		_, alive := b.up[replica]
		switch {
		case joins && !within && alive && slices.Contains(known.assigned, replica):
			next.isr = append(slices.Clone(next.isr), replica)
		case !joins && within && replica != id:
			next.isr = without(next.isr, replica)
		default:
			continue
		}
		stat, err := one.conn.Set(b.chroot+k.statePath(), next.encode(), known.state.version)
		switch err {
		case nil:
			next.version = stat.Version
			one.knows[k] = told{&next, known.assigned}
			return done
		case zk.ErrBadVersion, zk.ErrNoNode:
			continue
		}
		return unknown
	}
	return refused
}

// without returns a list without some of its members.
func without(from []int, those ...int) []int {
	kept := []int{}
	for _, each := range from {
		if !slices.Contains(those, each) {
			kept = append(kept, each)
		}
	}
	return kept
}
