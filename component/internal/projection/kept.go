package projection

import (
	"encoding/base32"
	"encoding/hex"
	"strconv"
	"strings"
	"unique"

	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// kept is what is stored of an object that a watch saw. It says what an [Object] says in a third of the
// memory: operators have tens of thousands of dependents.
type kept struct {
	uid        uid
	version    version
	generation int64
	// owner is the owner that the annotation names, which most objects share with others.
	owner   string
	digest  digest
	print   fingerprint.Print
	content fingerprint.Hash
	leaving bool
	reset   bool
	plain   bool // see PlainStatus
	ended   bool
	// replicas: see Replicas.
	replicas bool
	// released and translated: see Released and Translated.
	released, translated bool
	// rest is what most objects do not have; nil if there is nothing of that.
	rest *remainder
}

// remainder is what few objects have.
type remainder struct {
	uid, version, digest string // those that do not look like most
	annotation           string // the owner annotation if it does not name the object itself
	finalizers           []string
	health               health.Result
}

// Most uids are UUIDs, most versions are numbers, and most digests are 128 bits as text.
type (
	uid     [16]byte
	version uint64
	digest  [16]byte
)

func (u uid) get() types.UID {
	var text [36]byte
	hex.Encode(text[:8], u[:4])
	hex.Encode(text[9:13], u[4:6])
	hex.Encode(text[14:18], u[6:8])
	hex.Encode(text[19:23], u[8:10])
	hex.Encode(text[24:], u[10:])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return types.UID(text[:])
}

func packUID(text types.UID) (u uid, rest string) {
	if b, err := hex.DecodeString(strings.ReplaceAll(string(text), "-", "")); err == nil && len(b) == len(u) {
		if u = uid(b); u != (uid{}) && u.get() == text {
			return u, ""
		}
	}
	return uid{}, string(text)
}

func (v version) get() string { return strconv.FormatUint(uint64(v), 10) }

func packVersion(text string) (v version, rest string) {
	if n, err := strconv.ParseUint(text, 10, 64); err == nil && n > 0 && version(n).get() == text {
		return version(n), ""
	}
	return 0, text
}

func (d digest) get() string {
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(d[:]))
}

func packDigest(text string) (d digest, rest string) {
	b, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(strings.ToUpper(text))
	if err == nil && len(b) == len(d) && digest(b) != (digest{}) && digest(b).get() == text {
		return digest(b), ""
	}
	return digest{}, text
}

// keep returns what is stored of an object with a key.
func keep(o Object, key Key) *kept {
	k := &kept{generation: o.Generation, print: o.Print, content: o.Content, leaving: o.Leaving, reset: o.Reset, plain: o.PlainStatus, replicas: o.Replicas, released: o.Released, ended: o.Ended, translated: o.Translated}
	r := remainder{finalizers: o.Finalizers}
	var text string
	k.uid, r.uid = packUID(o.UID)
	k.version, r.version = packVersion(o.Version)
	k.digest, r.digest = packDigest(o.Digest)
	if k.owner, text, _ = strings.Cut(o.Owner, " "); text != key.itemKey() || k.owner+" "+text != o.Owner {
		r.annotation = o.Owner
	}
	k.owner = unique.Make(k.owner).Value()
	if o.Health != (health.Result{Status: health.Current}) {
		r.health = o.Health
	}
	if len(r.finalizers) > 0 || r.uid+r.version+r.digest+r.annotation != "" || r.health != (health.Result{}) || o.UID == "" || o.Version == "" || o.Owner == "" || o.Digest == "" {
		k.rest = &r
	}
	return k
}

// object returns the object with a key that is kept.
func (k *kept) object(key Key) *Object {
	o := &Object{
		UID: k.uid.get(), Version: k.version.get(), Generation: k.generation, Leaving: k.leaving, Print: k.print, Reset: k.reset, PlainStatus: k.plain, Replicas: k.replicas, Released: k.released, Ended: k.ended, Translated: k.translated,
		Content: k.content, Health: health.Result{Status: health.Current},
	}
	r := k.rest
	if r == nil {
		o.Digest, o.Owner = k.digest.get(), k.owner+" "+key.itemKey()
		return o
	}
	o.Finalizers, o.Owner, o.Digest = r.finalizers, r.annotation, r.digest
	if r.uid != "" || k.uid == (uid{}) {
		o.UID = types.UID(r.uid)
	}
	if k.version == 0 {
		o.Version = r.version
	}
	if k.digest != (digest{}) {
		o.Digest = k.digest.get()
	}
	if r.annotation == "" && k.owner != "" {
		o.Owner = k.owner + " " + key.itemKey()
	}
	if r.health != (health.Result{}) {
		o.Health = r.health
	}
	return o
}

// itemKey is the key of an object as its owner annotation has it.
func (k Key) itemKey() string {
	return api.InventoryItem{Group: k.Group, Kind: k.Kind, Namespace: k.Namespace, Name: k.Name}.Key()
}

// differs reports whether an object changed in anything that matters to its component.
func (o *Object) differs(other *Object) bool {
	return o.UID != other.UID || o.Leaving != other.Leaving || o.Ended != other.Ended || o.Released != other.Released || o.Owner != other.Owner || o.Digest != other.Digest ||
		o.Print != other.Print || o.Content != other.Content || o.Health != other.Health || o.Leaving && len(o.Finalizers) != len(other.Finalizers) ||
		(o.Print.Values == (fingerprint.Hash{}) || o.Translated || other.Translated) && o.Version != other.Version
}
