// A controller for KIP-236's reassignments in Go, its brokers, and the adapter that puts them to the
// test: a line of JSON for each question of `reassure`. See README.md.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"log"
	"os"
	"time"
)

const (
	done    = "ok"
	refused = "refused"
	unknown = "unknown"
)

// arguments are those of every call that is answered here; each call uses its own.
type arguments struct {
	Profile   string            `json:"profile"`
	Readings  map[string]string `json:"readings"`
	Hosts     string            `json:"hosts"`
	Chroot    string            `json:"chroot"`
	Brokers   []int             `json:"brokers"`
	TimeoutS  float64           `json:"timeout_s"`
	Broker    int               `json:"broker"`
	Topic     string            `json:"topic"`
	Partition int               `json:"partition"`
	Joins     bool              `json:"joins"`
}

type question struct {
	ID        int       `json:"id"`
	Call      string    `json:"call"`
	Arguments arguments `json:"arguments"`
}

// cluster is what runs in one example.
type cluster struct {
	hosts, chroot string
	brokers       *brokers
	controllers   []*controller
	nextID        int
}

func (c *cluster) start(a arguments) error {
	c.hosts, c.chroot, c.nextID = a.Hosts, a.Chroot, 100
	c.brokers = newBrokers(a.Hosts, a.Chroot)
	for _, id := range a.Brokers {
		if err := c.brokers.start(id); err != nil {
			return err
		}
	}
	if err := c.elect(); err != nil {
		return err
	}
	c.settle(10 * time.Second)
	return nil
}

// elect starts one more controller, which contends.
func (c *cluster) elect() error {
	c.nextID++
	one, err := startController(c.nextID, c.hosts, c.chroot, c.brokers)
	if err == nil {
		c.controllers = append(c.controllers, one)
	}
	return err
}

// kill ends the controller that acts; what it had in mind is lost.
func (c *cluster) kill() string {
	for at, one := range c.controllers {
		if one.acts() {
			one.end()
			c.controllers = append(c.controllers[:at], c.controllers[at+1:]...)
			return done
		}
	}
	return refused
}

// settle has every controller deal with all that was written before; one of them has to act.
func (c *cluster) settle(limit time.Duration) bool {
	until := time.After(limit)
	rests := false
	for _, one := range c.controllers {
		select {
		case acted := <-one.ask():
			rests = rests || acted
		case <-until:
			return false
		}
	}
	return rests
}

func (c *cluster) stop() {
	for _, one := range c.controllers {
		one.end()
	}
	c.controllers = nil
	if c.brokers != nil {
		c.brokers.stopAll()
	}
}

func describe(a arguments) any {
	return map[string]any{
		"name":            "go-controller",
		"version":         "0.1",
		"language":        "Go",
		"profile":         "kip-236",
		"readings":        map[string]string{},
		"capabilities":    []string{"isr", "brokers", "kill"},
		"adapter_version": 2,
	}
}

func (c *cluster) answer(call string, a arguments) (any, error) {
	switch call {
	case "describe":
		return describe(a), nil
	case "start":
		return nil, c.start(a)
	case "settle":
		return c.settle(time.Duration(a.TimeoutS * float64(time.Second))), nil
	case "stop", "close":
		c.stop()
		return nil, nil
	case "start_broker":
		return done, c.brokers.start(a.Broker)
	case "stop_broker":
		return c.brokers.stop(a.Broker), nil
	case "change_isr":
		return c.brokers.changeISR(a.Broker, key{a.Topic, a.Partition}, a.Joins), nil
	case "kill_controller":
		return c.kill(), nil
	case "elect":
		return done, c.elect()
	}
	return nil, fmt.Errorf("%s is not written", call)
}

func main() {
	log.SetFlags(0)
	var c cluster
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	out := json.NewEncoder(os.Stdout)
	for lines.Scan() {
		var asked question
		if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
			log.Fatal(err)
		}
		said := map[string]any{"id": asked.ID}
		if value, err := c.answer(asked.Call, asked.Arguments); err != nil {
			said["error"] = err.Error()
		} else {
			said["answer"] = value
		}
		if err := out.Encode(said); err != nil {
			log.Fatal(err)
		}
	}
	c.stop()
}
