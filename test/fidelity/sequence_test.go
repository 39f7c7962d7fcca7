//go:build !race

package fidelity

import (
	"encoding/json"
	"strings"
)

// sequence is what both servers are asked, one request after the other.
type sequence struct {
	// Why says what a kept case once showed.
	Why string `json:"why,omitempty"`
	// Seed is what the sequence was made from, 0 if by hand.
	Seed uint64 `json:"seed,omitempty"`
	Ops  []op   `json:"ops"`
}

// op is one request. Texts in it may hold $ns, $uid:KIND/NAME, $rv:KIND/NAME and
// $old:KIND/NAME: the namespace, and the UID, present and first resourceVersion of an object.
type op struct {
	// Do is the verb: create, update, json, merge, strategic, apply, delete, deletecollection,
	// get, list, pages, table or meta.
	Do string `json:"do"`
	// Of is the resource.
	Of string `json:"of"`
	// Version is the one to use; empty means the kind's first.
	Version string `json:"version,omitempty"`
	Name    string `json:"name,omitempty"`
	Sub     string `json:"sub,omitempty"`
	// Query is added to the URL.
	Query map[string]string `json:"query,omitempty"`
	// Onto says that Body is merged into what the server holds.
	Onto bool `json:"onto,omitempty"`
	// Protobuf says that objects of built-in kinds are sent and asked for in protobuf, as typed
	// clients do.
	Protobuf bool `json:"protobuf,omitempty"`
	// Body is what is sent, after the replacements.
	Body json.RawMessage `json:"body,omitempty"`
}

func (o op) String() string {
	b, _ := json.Marshal(o) // op has nothing that cannot be marshalled
	return string(b)
}

// writes reports whether the request may change something.
func (o op) writes() bool {
	switch o.Do {
	case "get", "list", "pages", "table", "meta":
		return false
	}
	return true
}

// collects reports whether a sequence gives the garbage collector work.
func (s sequence) collects() bool {
	for _, o := range s.Ops {
		b := string(o.Body)
		for _, sign := range []string{"ownerReferences", "propagationPolicy", "orphanDependents", "foregroundDeletion", `"orphan"`} {
			if strings.Contains(b, sign) {
				return true
			}
		}
	}
	return false
}
