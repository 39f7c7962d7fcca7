package trace

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEncoded: whatever an event has is there after it was encoded, also fields that are added later.
func TestEncoded(t *testing.T) {
	events := []Event{Start{}, Decision{}, Call{}, Drift{}, Write{}, Transition{}, End{}}
	for _, empty := range events {
		full := reflect.New(reflect.TypeOf(empty)).Elem()
		for i := range full.NumField() {
			switch f := full.Field(i); f.Kind() {
			case reflect.String:
				f.SetString(fmt.Sprintf("text %d \xff", i))
			case reflect.Bool:
				f.SetBool(true)
			case reflect.Slice:
				f.Set(reflect.ValueOf([]string{"a", "", "c"}))
			default:
				f.SetInt([]int64{1, math.MinInt64, math.MaxInt64}[i%3])
			}
		}
		whole, _ := reflect.TypeAssert[Event](full)
		var b []byte
		var want, got []Record
		for i, e := range []Event{empty, whole, empty} {
			r := Record{
				Time: time.Unix(0, []int64{0, -1, 1 << 60}[i]), Controller: "c", Pass: math.MaxUint64 >> i,
				Object: Object{Kind: "K", Namespace: "ns", Name: "n", UID: "u"}, Event: e,
			}
			want, b = append(want, r), appendRecord(b, r)
		}
		for ; len(b) > 0; b = b[sizeOf(b):] {
			got = append(got, decodeRecord(b))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%T (-want +got):\n%s", empty, diff)
		}
	}
}

// TestRingReleases: the memory of dropped records is free again, also of a record larger than a block.
func TestRingReleases(t *testing.T) {
	r := NewRing(RingOptions{Bytes: 4 * blockSize})
	for i := range 20_000 {
		e := End{Outcome: "Done"}
		if i == 10_000 {
			e.Err = string(make([]byte, 2*blockSize))
		}
		r.Record(Record{Event: e})
		held := 0
		for _, b := range r.blocks {
			held += cap(b)
		}
		if held > r.maxBytes+3*blockSize {
			t.Fatalf("after %d records the ring holds %d bytes, its limit is %d", i+1, held, r.maxBytes)
		}
	}
	if n := len(r.Select(Query{})); n != r.kept || n == 0 {
		t.Errorf("%d records are selected, %d are kept", n, r.kept)
	}
}
