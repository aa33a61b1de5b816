package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
)

// key names a partition.
type key struct {
	topic     string
	partition int
}

func (k key) statePath() string {
	return fmt.Sprintf("/brokers/topics/%s/partitions/%d/state", k.topic, k.partition)
}

func (k key) recordPath() string {
	return fmt.Sprintf("/admin/reassignments/%s/%d", k.topic, k.partition)
}

// content is a znode's JSON object; keys that are not known here are kept when it is rewritten.
type content map[string]json.RawMessage

func decode(data []byte) (content, error) {
	var found content
	if err := json.Unmarshal(data, &found); err != nil {
		return nil, err
	}
	if found == nil {
		return nil, errors.New("an object is expected")
	}
	return found, nil
}

func (c content) read(name string, into any) error {
	raw, there := c[name]
	if !there || bytes.Equal(raw, []byte("null")) {
		return fmt.Errorf("%s is missing", name)
	}
	return json.Unmarshal(raw, into)
}

func (c content) with(values map[string]any) []byte {
	whole := map[string]any{}
	for name, raw := range c {
		whole[name] = raw
	}
	for name, value := range values {
		whole[name] = value
	}
	data, err := json.Marshal(whole)
	if err != nil {
		panic(err) // numbers, lists and what was JSON before
	}
	return data
}

// state is /brokers/topics/T/partitions/P/state.
type state struct {
	leader, leaderEpoch, controllerEpoch int
	isr                                  []int
	raw                                  content
	version                              int32
}

func decodeState(data []byte, version int32) (*state, error) {
	raw, err := decode(data)
	if err != nil {
		return nil, err
	}
	s := &state{raw: raw, version: version}
	return s, errors.Join(
		raw.read("leader", &s.leader),
		raw.read("leader_epoch", &s.leaderEpoch),
		raw.read("controller_epoch", &s.controllerEpoch),
		raw.read("isr", &s.isr),
	)
}

func (s *state) encode() []byte {
	return s.raw.with(map[string]any{
		"version":          1,
		"leader":           s.leader,
		"leader_epoch":     s.leaderEpoch,
		"controller_epoch": s.controllerEpoch,
		"isr":              s.isr,
	})
}

// record is /admin/reassignments/T/P.
type record struct {
	top     int
	target  []int
	legacy  bool
	raw     content
	version int32
}

func decodeRecord(data []byte, version int32) (*record, error) {
	raw, err := decode(data)
	if err != nil {
		return nil, err
	}
	r := &record{raw: raw, version: version}
	var format int
	err = errors.Join(
		raw.read("version", &format), raw.read("top", &r.top), raw.read("assignment", &r.target),
	)
	if _, there := raw["legacy"]; there {
		err = errors.Join(err, raw.read("legacy", &r.legacy))
	}
	if err == nil && (format != 1 || r.top < 1 || len(r.target) == 0) {
		err = errors.New("no record of version 1")
	}
	return r, err
}

func (r *record) encode() []byte {
	return r.raw.with(map[string]any{
		"version": 1, "top": r.top, "assignment": r.target, "legacy": r.legacy,
	})
}

// request is /admin/reassignment_requests/request_N.
type request struct {
	targets map[key][]int
	legacy  bool
}

const mostBytes = 1 << 20

func decodeRequest(data []byte) (*request, error) {
	if len(data) > mostBytes {
		return nil, errors.New("it is too large")
	}
	if err := findTwice(json.NewDecoder(bytes.NewReader(data))); err != nil && err != io.EOF {
		return nil, err
	}
	raw, err := decode(data)
	if err != nil {
		return nil, err
	}
	for name := range raw {
		if !slices.Contains([]string{"version", "assignments", "legacy"}, name) {
			return nil, fmt.Errorf("%s is no key of a request", name)
		}
	}
	var version int
	var topics map[string]map[string][]int
	found := &request{targets: map[key][]int{}}
	err = errors.Join(raw.read("version", &version), raw.read("assignments", &topics))
	if _, there := raw["legacy"]; there {
		err = errors.Join(err, raw.read("legacy", &found.legacy))
	}
	if err == nil && version != 1 {
		err = errors.New("version 1 is expected")
	}
	for topic, partitions := range topics {
		for name, target := range partitions {
			partition, ok := parsePartition(name)
			if !ok || target == nil {
				return nil, fmt.Errorf("%s of %s is no partition with a target", name, topic)
			}
			found.targets[key{topic, partition}] = target
		}
	}
	return found, err
}

var number = regexp.MustCompile(`^(0|[1-9][0-9]{0,9})$`)

func parsePartition(name string) (int, bool) {
	if !number.MatchString(name) {
		return 0, false
	}
	found, err := strconv.Atoi(name)
	return found, err == nil
}

// findTwice says whether a key stands twice in one object of the next value.
func findTwice(from *json.Decoder) error {
	token, err := from.Token()
	if err != nil {
		return err
	}
	mark, nested := token.(json.Delim)
	if !nested {
		return nil
	}
	seen := map[any]bool{}
	for from.More() {
		if mark == '{' {
			name, err := from.Token()
			if err != nil {
				return err
			}
			if seen[name] {
				return fmt.Errorf("%v stands twice", name)
			}
			seen[name] = true
		}
		if err := findTwice(from); err != nil {
			return err
		}
	}
	_, err = from.Token()
	return err
}
