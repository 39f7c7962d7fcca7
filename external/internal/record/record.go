package record

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/trimtab-dev/trimtab/api"
)

// Record is the durable knowledge about the external resource of an object: the content of
// [api.AnnotationExternal]. It is written before a create, so that the resource can be found,
// recognised and deleted whatever happens. The zero record says that no create was ever prepared.
type Record struct {
	// ID is the resource's identity in its own system; empty while unknown.
	ID string `json:"id,omitempty"`
	// Given is the identity that the API assigned instead of ID; empty if it did not.
	Given string `json:"given,omitempty"`
	// Incarnation counts creations, from 1.
	Incarnation int64 `json:"inc"`
	// UID is that of the object for which the record was written. A different UID means that the
	// annotation was copied, or restored from a backup.
	UID string `json:"uid"`
	// Create says that a create may have been called.
	Create Marker `json:"create"`
	// Since is when the first record for this identity was written; zero if that is Create.At.
	Since time.Time `json:"since,omitzero"`
	// Done is when the resource was known to exist; zero if that was never recorded.
	Done time.Time `json:"done,omitzero"`
	// Refused reports whether the API certainly refused the create. It is recorded where no mark
	// shows the owner: a resource that has the name from then on is not ours.
	Refused bool `json:"refused,omitempty"`
	// Doubt reports whether the create was refused for a reason other than a name conflict, so
	// that it may have made the resource that has the name nevertheless.
	Doubt bool `json:"doubt,omitempty"`
	// Adopted is the UID in the mark that the resource bore when it was adopted, or
	// AdoptedUnmarked; empty if we created it. It grants nothing that the adoption policy would
	// not grant now.
	Adopted string `json:"adopted,omitempty"`
	// Operation is the last change of the resource that the API has not done at once. It stays if it
	// failed, until another change replaces it.
	Operation Operation `json:"op,omitzero"`
	// Where the record was written. A record that names another place arrived with a copy or a
	// restore. Empty means that the place was not known then.
	Place
}

// Operation is a change that the API has accepted and can be asked about. The zero value means that
// there is none.
type Operation struct {
	// ID is what the API calls it.
	ID string `json:"id"`
	// Call is the kind of change.
	Call Call `json:"call"`
	// At is when the API accepted it.
	At time.Time `json:"at"`
	// Generation is the generation of the object for which it was asked.
	Generation int64 `json:"gen"`
}

// Is reports whether o and other are the same operation.
func (o Operation) Is(other Operation) bool { return o.ID == other.ID && o.At.Equal(other.At) }

// Call is a kind of change of a resource.
type Call string

// The changes that may go on in an operation.
const (
	CallCreate Call = "create"
	CallUpdate Call = "update"
	CallDelete Call = "delete"
)

// Place is where a record was written.
type Place struct {
	// Cluster is the identity of the Kubernetes cluster.
	Cluster string `json:"cluster,omitempty"`
	// Installation is the identity of the operator's installation.
	Installation string `json:"installation,omitempty"`
	// Endpoint is the identity of the API that the operator called, pinned before the first
	// create.
	Endpoint string `json:"endpoint,omitempty"`
	// Object is the object, as "namespace/name".
	Object string `json:"object,omitempty"`
}

// Stays reports whether a new object keeps the record that it arrived with: its own, or one that
// may be its own from before a restore.
func (r Record) Stays(uid string, here Place) bool {
	if here.Endpoint == "" { // not known yet
		here.Endpoint = r.Endpoint
	}
	return r.Exists() && (r.UID == uid || r.AppliesAt(here))
}

// AppliesAt reports whether a record of another UID counts for the object at the place here. A
// restored object is at the very place where its record was written; a copy is not.
func (r Record) AppliesAt(here Place) bool {
	return r.Exists() && r.Place == here && here.Cluster != "" && here.Object != ""
}

// Marker notes that a create may have been called.
type Marker struct {
	// At is when the marker was written.
	At time.Time `json:"at"`
	// By identifies the process that wrote the marker.
	By string `json:"by"`
}

// AdoptedUnmarked is Record.Adopted for a resource that bore no mark when it was adopted.
const AdoptedUnmarked = "unmarked"

// AdoptedFrom returns the value of Record.Adopted for a resource with the mark found.
func AdoptedFrom(found map[string]string) string {
	if uid := found[MarkUID]; uid != "" {
		return uid
	}
	return AdoptedUnmarked
}

// Longest bounds the annotation; ids are the only parts that can grow.
const Longest = 8192

// LongestID bounds the identity in it, and that of an operation, which some APIs call by a signed URL.
const LongestID = Longest / 4

// Exists reports whether a create was ever prepared.
func (r Record) Exists() bool { return r.Incarnation > 0 }

// Claimed returns since when the object has claimed the resource; zero if there is no record.
func (r Record) Claimed() time.Time {
	if r.Since.IsZero() {
		return r.Create.At
	}
	return r.Since
}

// Had reports whether the resource ever existed, as far as the record says.
func (r Record) Had() bool { return !r.Done.IsZero() || r.Incarnation > 1 }

// Follows returns r as the successor of an earlier record of the same object.
func (r Record) Follows(before Record) Record {
	if before.Exists() && before.ID == r.ID && before.Endpoint == r.Endpoint {
		r.Since = before.Claimed()
	}
	return r
}

// Progress returns how far the creation is recorded.
func (r Record) Progress() Recorded {
	switch {
	case !r.Exists(), r.Refused:
		return MarkerNone
	case r.Done.IsZero():
		return MarkerPending
	}
	return MarkerDone
}

// Encode returns the annotation's value.
func (r Record) Encode() (string, error) {
	if err := r.check(); err != nil {
		return "", fmt.Errorf("encode the record of an external resource: %w", err)
	}
	r.Create.At, r.Since, r.Done, r.Operation.At = r.Create.At.UTC(), r.Since.UTC(), r.Done.UTC(), r.Operation.At.UTC()
	b, err := json.Marshal(r)
	if err != nil {
		return "", fmt.Errorf("encode the record of an external resource: %w", err)
	}
	return string(b), nil
}

// Parse reads the annotation's value. The empty value is the zero record; anything else must be
// exactly what Encode writes, because a guess about what exists could create a resource twice or
// leak one.
func Parse(value string) (Record, error) {
	if value == "" {
		return Record{}, nil
	}
	r, err := decode(value)
	if err != nil {
		return Record{}, fmt.Errorf("annotation %s cannot be read (%w); nothing is created or deleted until it is restored, "+
			"for example from a backup, or removed to find the resource by its name; then set annotation %s to a new value", api.AnnotationExternal, err, api.AnnotationReconcile)
	}
	return r, nil
}

// decode reads what Encode wrote. Any other value is read again, to say what is wrong with it.
func decode(value string) (Record, error) {
	if len(value) > Longest {
		return Record{}, fmt.Errorf("it is longer than %d bytes", Longest)
	}
	var r Record
	written := []byte(value)
	if json.Unmarshal(written, &r) == nil && r.check() == nil {
		if again, err := json.Marshal(&r); err == nil && bytes.Equal(again, written) {
			return r, nil
		}
	}
	return Record{}, flaw(value)
}

// flaw returns why a value is not one that Encode writes.
func flaw(value string) error {
	var r Record
	d := json.NewDecoder(strings.NewReader(value))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return describeJSON(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("something follows the record")
	}
	if err := r.check(); err != nil {
		return err
	}
	return errors.New("it is not as trimtab writes it")
}

// describeJSON keeps Go's own words and types out of messages for users.
func describeJSON(err error) error {
	if s, ok := errors.AsType[*json.SyntaxError](err); ok {
		return fmt.Errorf("it is no JSON at byte %d", s.Offset)
	}
	if u, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %q holds a %s", u.Field, u.Value)
	}
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return errors.New("it is cut off")
	}
	return errors.New("it is not as trimtab writes it")
}

func (r Record) check() error {
	switch {
	case r.Incarnation < 1:
		return fmt.Errorf("its incarnation is %d, less than 1", r.Incarnation)
	case r.UID == "":
		return errors.New("it names no object")
	case r.Create.At.IsZero():
		return errors.New("it does not say when the creation was prepared")
	case r.Create.By == "":
		return errors.New("it does not say who prepared the creation")
	case !utf8.ValidString(r.ID) || len(r.ID) > LongestID:
		return errors.New("its id is no usable text")
	case !utf8.ValidString(r.Given) || len(r.Given) > LongestID/2:
		return errors.New("its given id is no usable text")
	}
	return r.Operation.check()
}

func (o Operation) check() error {
	switch {
	case o == Operation{}:
		return nil
	case o.ID == "" || !FitsOperation(o.ID):
		return errors.New("the id of its operation is no usable text")
	case o.Call != CallCreate && o.Call != CallUpdate && o.Call != CallDelete:
		return fmt.Errorf("its operation is a %q, not a create, update or delete", o.Call)
	case o.At.IsZero():
		return errors.New("it does not say when its operation began")
	}
	return nil
}

// FitsOperation reports whether a record can have an operation that the API calls id.
func FitsOperation(id string) bool { return utf8.ValidString(id) && len(id) <= LongestID }

// Recorded is how far a creation is recorded.
type Recorded uint8

const (
	// MarkerNone means that no create was ever prepared.
	MarkerNone Recorded = iota
	// MarkerPending means that a create may have been called.
	MarkerPending
	// MarkerDone means that the resource is known to have existed.
	MarkerDone
)

// A create is only called under a marker younger than MarkerLife, and the clocks of two processes
// differ by no more than ClockSkew. So the age of a record shows when it can have no more effects.
const (
	MarkerLife = time.Minute
	ClockSkew  = 5 * time.Minute
)

// Expired reports whether the marker is too old for calling a create.
func (m Marker) Expired(now time.Time, life time.Duration) bool { return now.Sub(m.At) >= life }

// Settle returns the record as it will be read again, and the annotation's value.
func Settle(r Record) (Record, string, error) {
	value, err := r.Encode()
	if err != nil {
		return Record{}, "", err
	}
	r, err = Parse(value)
	return r, value, err
}

// Or returns p with its empty fields taken from other.
func (p Place) Or(other Place) Place {
	return Place{
		Cluster: cmp.Or(p.Cluster, other.Cluster), Installation: cmp.Or(p.Installation, other.Installation),
		Endpoint: cmp.Or(p.Endpoint, other.Endpoint), Object: cmp.Or(p.Object, other.Object),
	}
}

// Reaches reports whether the same name means the same resource at both places. Unknown fields
// count as equal.
func (p Place) Reaches(o Place) bool {
	if p.Endpoint != "" && o.Endpoint != "" {
		return p.Endpoint == o.Endpoint
	}
	return p.Installation == "" || o.Installation == "" || p.Installation == o.Installation
}
