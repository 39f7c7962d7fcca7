// Package applied writes down what an external resource was last given, for fields that its API does not show.
package applied

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/internal/plain"
)

const (
	// longestValue and longest bound, in bytes, what is written down as it is: all annotations of an object together
	// may have 256 KiB.
	longestValue = 256
	longest      = 16 << 10
	// marks begins what stands for a value.
	marks = "sha256:"
)

// SpecOf returns the fields of a spec that are set. Numbers keep all their digits.
func SpecOf(obj any) map[string]any {
	var fields struct {
		Spec map[string]any `json:"spec"`
	}
	if data, err := json.Marshal(obj); err == nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.UseNumber()
		_ = d.Decode(&fields) // it was encoded a moment ago
	}
	return fields.Spec
}

// Of returns what is written down of the spec of the object with a UID: the spec as JSON. Digests stand for strings in fields
// named like a secret, for long values and, in a long spec, for all its fields.
func Of(uid types.UID, spec map[string]any) (string, error) {
	data, err := json.Marshal(redact(uid, spec))
	return string(data), err
}

// Differs reports whether the value at path in spec is set and is not certainly the one that was written down. Path is one
// of fields, as in "spec.auth.pin". What stands for the value is returned, too.
func Differs(uid types.UID, spec map[string]any, written, path string) (now any, differs bool) {
	before, present := parse([]byte(written)), parse(encode(redact(uid, spec))) // so that equal values are of the same type
	now = at(present, path)
	return now, now != nil && (before == nil || !reflect.DeepEqual(at(before, path), now))
}

// parse returns what was written down with all digits of its numbers; nil if it cannot be read, so that nothing is known.
func parse(data []byte) (fields map[string]any) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(&fields); err != nil {
		return nil
	}
	return fields
}

// Change is a field of a spec that is not as it was written down.
type Change struct {
	Path       string
	Want, Have any
}

// Version returns a short text that stands for what was written down for an object; empty if that is nothing. It is no secret.
func Version(uid types.UID, written string) string {
	if written == "" {
		return ""
	}
	return digest(uid, "", written)[len(marks):][:12]
}

// Changes returns how a spec differs from what was written down, by path; nothing if that is not known.
func Changes(uid types.UID, spec map[string]any, written string) []Change {
	before, now := parse([]byte(written)), parse(encode(redact(uid, spec)))
	if before == nil {
		return nil
	}
	return changes("spec", before, now)
}

func changes(path string, before, now map[string]any) (out []Change) {
	all := maps.Clone(before)
	maps.Copy(all, now)
	for _, field := range slices.Sorted(maps.Keys(all)) {
		at, had, has := path+"."+field, before[field], now[field]
		was, wasNested := had.(map[string]any)
		is, isNested := has.(map[string]any)
		switch {
		case reflect.DeepEqual(had, has):
		case wasNested && isNested:
			out = append(out, changes(at, was, is)...)
		default:
			out = append(out, Change{Path: at, Want: has, Have: had})
		}
	}
	return out
}

// at returns the value at path, or the digest of what it is in.
func at(spec map[string]any, path string) any {
	var value any = spec
	for field := range strings.SplitSeq(strings.TrimPrefix(path, "spec."), ".") {
		fields, nested := value.(map[string]any)
		if !nested {
			return value
		}
		value = fields[field]
	}
	return value
}

func redact(uid types.UID, spec map[string]any) map[string]any {
	out, _ := hide(uid, "spec", spec, false).(map[string]any)
	if len(encode(out)) <= longest {
		return out
	}
	for field, value := range spec {
		out[field] = digest(uid, "spec."+field, value)
	}
	return out
}

// hide returns a copy of a value in which digests stand for secrets and for what is long. Everything is secret that is in a
// field named like one.
func hide(uid types.UID, path string, value any, secret bool) any {
	secret = secret || plain.NamesSecret(path) || plain.NamesSecret(strings.TrimSuffix(path, "s"))
	switch v := value.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for field, inner := range v {
			out[field] = hide(uid, path+"."+field, inner, secret)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, inner := range v {
			out[i] = hide(uid, path, inner, secret)
		}
		if len(encode(out)) <= longestValue {
			return out
		}
	case nil:
		return nil
	default:
		if !secret && len(encode(v)) <= longestValue {
			return v
		}
	}
	return digest(uid, path, value)
}

// digest stands for a value at a path of one object: the same value elsewhere has another digest.
func digest(uid types.UID, path string, value any) string {
	h := hmac.New(sha256.New, []byte(uid))
	fmt.Fprintf(h, "%s\n%s", path, encode(value))
	return marks + base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:18])
}

func encode(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil { // it came from JSON
		return nil
	}
	return data
}
