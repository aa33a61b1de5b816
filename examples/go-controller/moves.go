package main

import (
	"fmt"
	"log"
	"regexp"
	"slices"
)

// move takes the next step of a reassignment in flight.
func (c *controller) move(w *world) (bool, error) {
	for _, k := range w.order {
		p := w.partitions[k]
		if p.record == nil {
			delete(c.announced, k)
			delete(c.completing, k)
			delete(c.changed, k)
			continue
		}
		if taken, err := c.moveOne(w, k, p); taken || err != nil {
			return taken, err
		}
	}
	return false, nil
}

func (c *controller) moveOne(w *world, k key, p *partition) (bool, error) {
	target := p.record.target
	missing := without(target, p.assigned...)
	top := p.record.top
	unfinished := len(missing) > 0 || len(p.assigned) > top+len(target)
	if len(p.assigned) > top && (c.changed[k] || unfinished) {
		return c.dropSome(w, k, p)
	}
	delete(c.changed, k)
	if len(missing) > 0 {
		return true, c.assign(k, p, append(slices.Clone(p.assigned), missing...))
	}
	if p.state == nil { // nobody alive is assigned yet
		return false, nil
	}
	if c.announced[k] != fmt.Sprint(target) {
		err := c.writeState(k, p, p.state.leader, p.state.isr)
		if err == nil {
			c.announced[k] = fmt.Sprint(target)
		}
		return true, err
	}
	if len(without(target, p.state.isr...)) > 0 || !w.led(p) {
		return false, nil
	}
	return true, c.complete(w, k, p)
}

// dropSome makes room for a changed target: of those assigned the first `top` stay, whoever the target
// names. It is due once: by the controller that wrote the change, or by the next where that can be seen.
func (c *controller) dropSome(w *world, k key, p *partition) (bool, error) {
	if !w.led(p) {
		return false, nil
	}
	ranked := []int{p.state.leader}
	inSync := func(id int) bool { return slices.Contains(p.state.isr, id) }
	for _, wanted := range []bool{true, false} {
		for _, id := range p.assigned {
			if id != p.state.leader && inSync(id) == wanted {
				ranked = append(ranked, id)
			}
		}
	}
	going := ranked[min(p.record.top, len(ranked)):]
	if isr := without(p.state.isr, going...); len(isr) < len(p.state.isr) {
		return true, c.writeState(k, p, p.state.leader, isr)
	}
	for _, id := range going {
		c.stopReplica(id, k)
	}
	return true, c.assign(k, p, without(p.assigned, going...))
}

func (c *controller) stopReplica(id int, k key) {
	c.brokers.drop(id, k)
	delete(c.heard, fmt.Sprint(id, k))
}

// assign writes the assignment of one partition; all else that the znode says stays.
func (c *controller) assign(k key, p *partition, assigned []int) error {
	next := map[string][]int{}
	for name, each := range p.topic.assigned {
		next[name] = each
	}
	next[fmt.Sprint(k.partition)] = assigned
	data := p.topic.raw.with(map[string]any{"partitions": next})
	return c.write(c.set("/brokers/topics/"+k.topic, data, p.topic.version))
}

// complete takes the next step of the end of a reassignment whose target is in sync.
func (c *controller) complete(w *world, k key, p *partition) error {
	target := p.record.target
	if c.completing[k] != fmt.Sprint(target) {
		leader := p.state.leader
		if !slices.Contains(target, leader) {
			leader = firstOf(target, w.living(p.state.isr))
		}
		err := c.writeState(k, p, leader, p.state.isr)
		if err == nil {
			c.completing[k] = fmt.Sprint(target)
		}
		return err
	}
	going := without(p.assigned, target...)
	if isr := without(p.state.isr, going...); len(isr) < len(p.state.isr) {
		return c.writeState(k, p, p.state.leader, isr)
	}
	for _, id := range going {
		c.stopReplica(id, k)
	}
	if !slices.Equal(p.assigned, target) {
		return c.assign(k, p, target)
	}
	operations := []any{c.delete(k.recordPath(), p.record.version)}
	if p.topic.records == 1 {
		operations = append(operations, c.delete("/admin/reassignments/"+k.topic, -1))
	}
	return c.write(operations...)
}

var requestName = regexp.MustCompile(`^request_[0-9]{10}$`)

// takeUp takes the request with the lowest number: its records are written, then it is removed.
func (c *controller) takeUp(w *world) (bool, error) {
	if len(w.requests) == 0 {
		return false, nil
	}
	// What is not named like a request sorts anywhere; the numbers of those that are have one length.
	name := w.requests[0]
	path := "/admin/reassignment_requests/" + name
	data, stat, err := c.read(path)
	if err != nil || stat == nil {
		return stat == nil, err
	}
	asked, err := decodeRequest(data)
	if err != nil || !requestName.MatchString(name) {
		log.Printf("controller %d: %s is no request (%v); removed", c.id, path, err)
		return true, c.write(c.delete(path, -1))
	}
	due := plan{parents: map[string]bool{}}
	for k, target := range asked.targets {
		c.begin(w, &due, k, target, asked.legacy)
	}
	if len(due.operations) == 0 {
		return true, c.write(c.delete(path, stat.Version))
	}
	if err := c.write(due.operations...); err != nil {
		return true, err
	}
	for _, k := range due.changed {
		c.changed[k] = true
	}
	return true, nil
}

// plan is what one request makes due.
type plan struct {
	operations []any
	parents    map[string]bool // topics whose parent znode is among the operations
	changed    []key
}

// begin adds what has to be written to begin or change a reassignment; nothing where it is refused or
// nothing has to change.
func (c *controller) begin(w *world, due *plan, k key, target []int, legacy bool) {
	p := w.partitions[k]
	if p == nil || !c.acceptable(w, target) {
		return
	}
	if r := p.record; r != nil {
		if r.legacy != legacy || slices.Equal(r.target, target) {
			return
		}
		next := *r
		next.target = target
		due.operations = append(due.operations, c.set(k.recordPath(), next.encode(), r.version))
		due.changed = append(due.changed, k)
		return
	}
	if slices.Equal(p.assigned, target) || len(p.assigned) < p.topic.minISR {
		return
	}
	if p.topic.records == 0 && !due.parents[k.topic] {
		due.parents[k.topic] = true
		parent := c.create("/admin/reassignments/"+k.topic, nil)
		due.operations = append(due.operations, parent)
	}
	r := record{top: len(p.assigned), target: target, legacy: legacy, raw: content{}}
	due.operations = append(due.operations, c.create(k.recordPath(), r.encode()))
}

// acceptable says whether a target is one: brokers that are known, each once.
func (c *controller) acceptable(w *world, target []int) bool {
	seen := map[int]bool{}
	for _, id := range target {
		if seen[id] || !w.known[id] {
			return false
		}
		seen[id] = true
	}
	return len(target) > 0
}
