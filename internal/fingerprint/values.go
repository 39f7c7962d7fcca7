package fingerprint

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Of returns what identifies the manager's hold on a live object, given as decoded from JSON and with
// its kind. The
// manager's entry is the one with this operation and without subresource. Of reports false if there
// is none.
func Of(live map[string]any, manager string, operation metav1.ManagedFieldsOperationType) (Print, bool) {
	own, others := entries(live, manager, operation)
	if own == nil {
		return Print{}, false
	}
	set, _ := own["fieldsV1"].(map[string]any)
	apiVersion, _ := own["apiVersion"].(string)
	w := newWalker(others)
	w.fields(set, live)
	return Print{Owned: ownedHash(apiVersion, setHash(set)), Values: w.sumFor(live)}, true
}

// entries returns the manager's entry of managedFields, or nil, and the fields of all others.
func entries(live map[string]any, manager string, operation metav1.ManagedFieldsOperationType) (own map[string]any, others []map[string]any) {
	metadata, _ := live["metadata"].(map[string]any)
	list, _ := metadata["managedFields"].([]any)
	for _, item := range list {
		entry, _ := item.(map[string]any)
		subresource, _ := entry["subresource"].(string)
		if own == nil && entry["manager"] == manager && entry["operation"] == string(operation) && subresource == "" {
			own = entry
			continue
		}
		if set, ok := entry["fieldsV1"].(map[string]any); ok {
			others = append(others, set)
		}
	}
	return own, others
}

// The walker writes live values to a hash. What it writes can be read back in one way only: each
// value starts with its kind, strings with their length, and containers end.
const (
	kindAbsent = 'a'
	kindNull   = 'n'
	kindFalse  = 'f'
	kindTrue   = 't'
	kindInt    = 'i'
	kindFloat  = 'd'
	kindString = 's'
	kindMap    = '{'
	kindList   = '['
	kindOther  = 'o'
	kindEnd    = '.'
)

type walker struct {
	others  []map[string]any // fields of the other managers
	keyless bool             // leaves out the elements of items
	path    []string         // from the root to the present value, as elements of a set
	keys    []string         // a stack of keys being sorted
	text    []byte           // an element being built
	buf     []byte           // what is not yet in the hash
	hash    hash.Hash
}

const bufBytes = 2048

func newWalker(others []map[string]any) *walker {
	return &walker{
		others: others, path: make([]string, 0, 16), keys: make([]string, 0, 64),
		buf: make([]byte, 0, bufBytes), hash: sha256.New(),
	}
}

func (w *walker) sum() (h Hash) {
	w.flush()
	var full [sha256.Size]byte
	copy(h[:], w.hash.Sum(full[:0]))
	return h
}

// secretBytes is how much of the hash of a Secret's values is kept. Prints are shown to users who may
// not read the Secret: all of it would confirm a guessed password.
const secretBytes = 2

// sumFor returns the hash of the values of an object, which is never zero.
func (w *walker) sumFor(live map[string]any) Hash {
	h := w.sum()
	if live["kind"] == "Secret" && live["apiVersion"] == "v1" {
		clear(h[secretBytes:])
	}
	h[len(h)-1] |= 1
	return h
}

func (w *walker) flush() {
	w.hash.Write(w.buf)
	w.buf = w.buf[:0]
}

func (w *walker) kind(k byte) {
	if len(w.buf) >= bufBytes-16 {
		w.flush()
	}
	w.buf = append(w.buf, k)
}

func (w *walker) string(s string) {
	w.buf = binary.AppendUvarint(w.buf, uint64(len(s)))
	if len(w.buf)+len(s) <= bufBytes {
		w.buf = append(w.buf, s...)
		return
	}
	w.flush()
	for ; len(s) > bufBytes; s = s[bufBytes:] {
		w.hash.Write(append(w.buf[:0], s[:bufBytes]...))
	}
	w.buf = append(w.buf[:0], s...)
}

// fields writes the values of a map at the elements of a set. An element that is "." stands for the
// map itself.
func (w *walker) fields(set, live map[string]any) {
	w.kind(kindMap)
	from := len(w.keys)
	for key := range set {
		if strings.HasPrefix(key, prefixField) {
			w.keys = append(w.keys, key)
		}
	}
	slices.Sort(w.keys[from:])
	to := len(w.keys)
	for i := from; i < to; i++ {
		key := w.keys[i]
		name := key[len(prefixField):]
		w.string(name)
		below, ok := live[name]
		if !ok {
			w.kind(kindAbsent)
			continue
		}
		w.element(key, set[key], below)
	}
	w.keys = w.keys[:from]
	w.kind(kindEnd)
}

// element writes the live value at one element of a set.
func (w *walker) element(key string, set, live any) {
	children, _ := set.(map[string]any)
	w.path = append(w.path, key)
	switch live := live.(type) {
	case map[string]any:
		if len(children) == 0 {
			w.leaf(live, len(live) > 0)
		} else {
			w.fields(children, live)
		}
	case []any:
		if len(children) == 0 {
			w.leaf(live, len(live) > 0)
		} else {
			w.items(children, live)
		}
	default:
		w.value(live)
	}
	w.path = w.path[:len(w.path)-1]
}

// leaf writes a map or list that is owned as a whole, unless others own parts of it: then the manager
// applied an empty one, and what is in it is not its own.
func (w *walker) leaf(live any, filled bool) {
	if !filled || !w.shared() {
		w.value(live)
		return
	}
	if _, ok := live.([]any); ok {
		w.value([]any(nil))
	} else {
		w.value(map[string]any(nil))
	}
}

// shared reports whether another manager owns a part of the present value.
func (w *walker) shared() bool {
	for _, set := range w.others {
		for _, key := range w.path {
			set, _ = set[key].(map[string]any)
		}
		for key := range set {
			if key != "." {
				return true
			}
		}
	}
	return false
}

// value writes a value whole.
func (w *walker) value(v any) {
	switch v := v.(type) {
	case nil:
		w.kind(kindNull)
	case string:
		w.kind(kindString)
		w.string(v)
	case bool:
		if v {
			w.kind(kindTrue)
		} else {
			w.kind(kindFalse)
		}
	case int64:
		w.kind(kindInt)
		w.buf = binary.AppendVarint(w.buf, v)
	case float64:
		w.float(v)
	case map[string]any:
		w.wholeMap(v)
	case []any:
		w.kind(kindList)
		for _, item := range v {
			w.value(item)
		}
		w.kind(kindEnd)
	default:
		w.other(v)
	}
}

// float writes a number. One without fraction is the same as the integer: 7.0 is 7.
func (w *walker) float(v float64) {
	if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
		w.value(int64(v))
		return
	}
	w.kind(kindFloat)
	w.buf = binary.BigEndian.AppendUint64(w.buf, math.Float64bits(v))
}

func (w *walker) wholeMap(v map[string]any) {
	w.kind(kindMap)
	from := len(w.keys)
	for key := range v {
		w.keys = append(w.keys, key)
	}
	slices.Sort(w.keys[from:])
	to := len(w.keys)
	for i := from; i < to; i++ {
		key := w.keys[i]
		w.string(key)
		w.value(v[key])
	}
	w.keys = w.keys[:from]
	w.kind(kindEnd)
}

// other writes a value that decoding JSON does not give, as JSON would have it.
func (w *walker) other(v any) {
	data, err := json.Marshal(v)
	if err != nil {
		data = fmt.Append(nil, err)
	}
	var plain any
	if json.Unmarshal(data, &plain) == nil {
		w.value(plain)
		return
	}
	w.kind(kindOther)
	w.string(string(data))
}
