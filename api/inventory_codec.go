package api

import (
	"bytes"
	"compress/flate"
	"encoding/base32"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"strings"
)

// The compact form begins with this byte and its version. Then come a checksum of the content and the
// content, deflated: a dictionary of what items have in common, as JSON, and the items column by column. What
// is random, such as a UID, is packed. Fields that this file does not name are part of the dictionary, so that
// none is lost.
const (
	compactMark    = 'i'
	compactVersion = 1
	compactHead    = 2 + 4
	// compactMost bounds the content, so that a forged inventory does not exhaust the memory.
	compactMost = 256 << 20
)

var errDamaged = errors.New("it is damaged; restore the status from a backup, or remove the inventory from the status: " +
	"then Kubernetes objects are found again by their labels, and " +
	"external resources only if they are still rendered; functions are called again")

// EncodeInventory returns the compact form of items.
func EncodeInventory(items []InventoryItem) ([]byte, error) {
	c, err := columnsOf(items)
	if err != nil {
		return nil, err
	}
	content := c.content()
	out := &bytes.Buffer{}
	out.Write([]byte{compactMark, compactVersion})
	out.Write(binary.BigEndian.AppendUint32(nil, crc32.ChecksumIEEE(content)))
	deflate, err := flate.NewWriter(out, flate.DefaultCompression)
	if err != nil {
		return nil, fmt.Errorf("compress the inventory: %w", err)
	}
	if _, err = deflate.Write(content); err == nil {
		err = deflate.Close()
	}
	if err != nil {
		return nil, fmt.Errorf("compress the inventory: %w", err)
	}
	return out.Bytes(), nil
}

// DecodeInventory returns the items of a compact form.
func DecodeInventory(data []byte) ([]InventoryItem, error) {
	switch {
	case len(data) < compactHead || data[0] != compactMark:
		return nil, errDamaged
	case data[1] != compactVersion:
		return nil, fmt.Errorf("it has version %d, and this release reads version %d; run the release that wrote it", data[1], compactVersion)
	}
	inflate := flate.NewReader(bytes.NewReader(data[compactHead:]))
	content, err := io.ReadAll(io.LimitReader(inflate, compactMost))
	if err != nil || crc32.ChecksumIEEE(content) != binary.BigEndian.Uint32(data[2:compactHead]) {
		return nil, errDamaged
	}
	return parseColumns(content)
}

// columns are items column by column.
type columns struct {
	// common has what items have in common, and kinds the index of each item in it.
	common []string
	kinds  []int
	// names, uids, digests, values and versions are the rest of the items. values and versions are the parts
	// of the fingerprint that differ from object to object.
	names, uids, digests, values, versions []string
}

// A fingerprint has two hashes of this many characters, and perhaps a version. The first hash is the same of
// objects of the same shape.
const hashChars = 11

func columnsOf(items []InventoryItem) (columns, error) {
	var c columns
	index := map[string]int{}
	for _, item := range items {
		c.names, c.uids, c.digests = append(c.names, item.Name), append(c.uids, item.UID), append(c.digests, item.Digest)
		text := item.Fingerprint
		first, second := min(hashChars, len(text)), min(2*hashChars, len(text))
		item.Fingerprint = text[:first]
		c.values, c.versions = append(c.values, text[first:second]), append(c.versions, text[second:])
		item.Name, item.UID, item.Digest = "", "", ""
		common, err := json.Marshal(item)
		if err != nil {
			return c, fmt.Errorf("encode the inventory: %w", err)
		}
		at, known := index[string(common)]
		if !known {
			at = len(c.common)
			index[string(common)] = at
			c.common = append(c.common, string(common))
		}
		c.kinds = append(c.kinds, at)
	}
	return c, nil
}

// content writes the columns one after the other.
func (c columns) content() []byte {
	out := binary.AppendUvarint(nil, uint64(len(c.kinds)))
	out = appendStrings(binary.AppendUvarint(out, uint64(len(c.common))), c.common, packText)
	for _, kind := range c.kinds {
		out = binary.AppendUvarint(out, uint64(kind))
	}
	out = appendStrings(out, c.names, packText)
	out = appendStrings(out, c.uids, packUID)
	out = appendStrings(out, c.digests, packDigest)
	out = appendStrings(out, c.values, packValue)
	return appendStrings(out, c.versions, packText)
}

// appendStrings appends how long each string is, and then the strings. The lowest bit of a length says that the
// string is packed.
func appendStrings(out []byte, list []string, pack packing) []byte {
	var content []byte
	for _, s := range list {
		packed, ok := pack.pack(s)
		length := uint64(len(s)) << 1
		if ok {
			length = uint64(len(packed))<<1 | 1
		} else {
			packed = []byte(s)
		}
		out, content = binary.AppendUvarint(out, length), append(content, packed...)
	}
	return append(out, content...)
}

// parseColumns makes items of what content wrote.
func parseColumns(content []byte) ([]InventoryItem, error) {
	r := &reader{rest: content}
	n := r.count()
	common := r.strings(r.count(), packText)
	kinds := make([]uint64, n)
	for i := range kinds {
		kinds[i] = r.number()
	}
	names, uids, digests := r.strings(n, packText), r.strings(n, packUID), r.strings(n, packDigest)
	values, versions := r.strings(n, packValue), r.strings(n, packText)
	if r.failed || len(r.rest) > 0 {
		return nil, errDamaged
	}
	prototypes := make([]InventoryItem, len(common))
	for i, text := range common {
		if err := json.Unmarshal([]byte(text), &prototypes[i]); err != nil {
			return nil, errDamaged
		}
	}
	items := make([]InventoryItem, n)
	for i := range items {
		if kinds[i] >= uint64(len(prototypes)) {
			return nil, errDamaged
		}
		prototypes[kinds[i]].DeepCopyInto(&items[i])
		items[i].Name, items[i].UID, items[i].Digest = names[i], uids[i], digests[i]
		items[i].Fingerprint += values[i] + versions[i]
	}
	return items, nil
}

// reader reads content. After it has failed, it returns zeros.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) number() uint64 {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 {
		r.failed = true
		return 0
	}
	r.rest = r.rest[n:]
	return v
}

// count reads a number of things that are at least a byte each.
func (r *reader) count() int {
	n := r.number()
	if n > uint64(len(r.rest)) {
		r.failed = true
		return 0
	}
	return int(n)
}

func (r *reader) strings(n int, pack packing) []string {
	lengths := make([]uint64, n)
	for i := range lengths {
		lengths[i] = r.number()
	}
	out := make([]string, n)
	for i, length := range lengths {
		size := length >> 1
		if r.failed || size > uint64(len(r.rest)) {
			r.failed = true
			return out
		}
		out[i] = string(r.rest[:size])
		if length&1 == 1 {
			out[i] = pack.unpack(r.rest[:size])
		}
		r.rest = r.rest[size:]
	}
	return out
}

// packing is how the strings of a column are packed. Strings of another form stay as they are.
type packing int

const (
	packText   packing = iota // not at all
	packUID                   // as the 16 bytes of a UUID
	packDigest                // as the bytes of lower-case base32
	packValue                 // as the bytes of base64 for URLs
)

// pack returns the packed string and true, if it is one that unpack returns.
func (p packing) pack(s string) ([]byte, bool) {
	var packed []byte
	var err error
	switch p {
	case packText:
		return nil, false
	case packUID:
		packed, err = hex.DecodeString(strings.ReplaceAll(s, "-", ""))
	case packDigest:
		packed, err = base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(s))
	case packValue:
		packed, err = base64.RawURLEncoding.DecodeString(s)
	}
	return packed, s != "" && err == nil && p.unpack(packed) == s
}

func (p packing) unpack(packed []byte) string {
	switch p {
	case packUID:
		if len(packed) == 16 {
			text := hex.EncodeToString(packed)
			return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
		}
	case packDigest:
		return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(packed))
	case packValue:
		return base64.RawURLEncoding.EncodeToString(packed)
	case packText:
	}
	return string(packed)
}
