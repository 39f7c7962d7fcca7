package fingerprint

import (
	"encoding/binary"
	"encoding/json"
	"math/bits"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// OfMetadata returns the Owned half of the print. It reports false if the manager has no entry with
// this operation. Metadata that was read as unstructured gives the same hash, but is slower than
// [Of].
func OfMetadata(object metav1.Object, manager string, operation metav1.ManagedFieldsOperationType) (Hash, bool) {
	for _, entry := range object.GetManagedFields() {
		if entry.Manager != manager || entry.Operation != operation || entry.Subresource != "" {
			continue
		}
		var fields uint64
		if entry.FieldsV1 != nil {
			fields = rawFields(entry.FieldsV1.GetRawBytes())
		}
		return ownedHash(entry.APIVersion, fields), true
	}
	return Hash{}, false
}

// ownedHash need not resist forgery: who can write managedFields can as well write the old ones. When the
// entry was written is left out: the values tell whether they are ours, and so an object is the same
// after a repair as it was before the drift.
func ownedHash(apiVersion string, fields uint64) Hash {
	var h Hash
	binary.BigEndian.PutUint64(h[:], mix(mix(text(apiVersion))+bits.RotateLeft64(mix(fields), 2)))
	return h
}

// setHash identifies a set of fields. Clients order the elements of a set in different ways: its
// order does not count.
func setHash(set map[string]any) uint64 {
	var sum uint64
	for key, below := range set {
		children, _ := below.(map[string]any)
		sum += member(text(key), setHash(children))
	}
	return sum
}

// rawFields is setHash of a set in JSON.
func rawFields(raw []byte) uint64 {
	s := scanner{raw: raw}
	sum, ok := s.set()
	if ok && s.end() {
		return sum
	}
	var set map[string]any
	if json.Unmarshal(raw, &set) != nil {
		return textBytes(raw)
	}
	return setHash(set)
}

// scanner hashes a set without decoding it. It gives up on JSON that the API server does not write.
type scanner struct {
	raw []byte
	at  int
}

func (s *scanner) set() (uint64, bool) {
	if !s.take('{') {
		return 0, false
	}
	if s.take('}') {
		return 0, true
	}
	var sum uint64
	for {
		key, ok := s.key()
		if !ok || !s.take(':') {
			return 0, false
		}
		below, ok := s.set()
		if !ok {
			return 0, false
		}
		sum += member(key, below)
		if s.take('}') {
			return sum, true
		}
		if !s.take(',') {
			return 0, false
		}
	}
}

// key hashes a string. Of the escapes it knows those of quotes and backslashes.
func (s *scanner) key() (uint64, bool) {
	if !s.take('"') {
		return 0, false
	}
	h := uint64(fnvOffset)
	for ; s.at < len(s.raw); s.at++ {
		c := s.raw[s.at]
		if c == '"' {
			s.at++
			return h, true
		}
		if c == '\\' {
			s.at++
			if s.at == len(s.raw) {
				return 0, false
			}
			if c = s.raw[s.at]; c != '"' && c != '\\' {
				return 0, false
			}
		}
		h = (h ^ uint64(c)) * fnvPrime
	}
	return 0, false
}

func (s *scanner) take(c byte) bool {
	s.space()
	if s.at < len(s.raw) && s.raw[s.at] == c {
		s.at++
		return true
	}
	return false
}

func (s *scanner) end() bool {
	s.space()
	return s.at == len(s.raw)
}

func (s *scanner) space() {
	for s.at < len(s.raw) && (s.raw[s.at] == ' ' || s.raw[s.at] == '\n') {
		s.at++
	}
}

const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

func text(s string) uint64 {
	h := uint64(fnvOffset)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * fnvPrime
	}
	return h
}

func textBytes(b []byte) uint64 {
	h := uint64(fnvOffset)
	for _, c := range b {
		h = (h ^ uint64(c)) * fnvPrime
	}
	return h
}

func member(key, below uint64) uint64 {
	return mix(key ^ bits.RotateLeft64(mix(below+1), 7))
}

// mix is the finalizer of SplitMix64: each bit of x changes about half of the result's.
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
