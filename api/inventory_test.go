package api_test

import (
	"crypto/rand"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/trimtab-dev/trimtab/api"
)

// typical returns n items as components have them.
func typical(n int) []api.InventoryItem {
	random := func(bytes int) []byte {
		b := make([]byte, bytes)
		_, _ = rand.Read(b)
		return b
	}
	items := make([]api.InventoryItem, n)
	for i := range items {
		items[i] = api.InventoryItem{
			Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("settings-of-service-%d", i), UID: string(uuid.NewUUID()),
			Policies: api.Policies{AdoptionPolicy: api.AdoptionPolicyIfUnowned, UpdatePolicy: api.UpdatePolicySsaOverride},
			Digest:   strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random(16))),
			Phase:    api.PhaseReady, Status: "Current",
		}
		shape := base64.RawURLEncoding.EncodeToString([]byte{1, 2, 3, 4, 5, 6, 7, byte(i % 7)})
		items[i].Fingerprint = shape + base64.RawURLEncoding.EncodeToString(random(8)) + fmt.Sprintf("@%d", 100000+i)
		if i%10 == 0 {
			items[i].Group, items[i].Kind, items[i].Fingerprint = "apps", "Deployment", items[i].Fingerprint[:22]
			items[i].DependsOn = []string{"/Namespace//shop"}
		}
	}
	return items
}

func roundTrip(t *testing.T, items []api.InventoryItem) {
	t.Helper()
	data, err := api.EncodeInventory(items)
	if err != nil {
		t.Fatal(err)
	}
	again, err := api.DecodeInventory(data)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(items, again); diff != "" && len(items)+len(again) > 0 {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

// TestInventoryCarriesEveryField: each field of an item, alone and with all others, survives.
func TestInventoryCarriesEveryField(t *testing.T) {
	full := api.InventoryItem{}
	fill(t, reflect.ValueOf(&full).Elem())
	fields := reflect.TypeFor[api.InventoryItem]()
	for i := range fields.NumField() {
		t.Run(fields.Field(i).Name, func(t *testing.T) {
			if reflect.ValueOf(full).Field(i).IsZero() {
				t.Fatal("it was not filled")
			}
			one := api.InventoryItem{}
			reflect.ValueOf(&one).Elem().Field(i).Set(reflect.ValueOf(full).Field(i))
			roundTrip(t, []api.InventoryItem{one, {}, full, one})
		})
	}
}

// fill sets all fields of a value to something that is not zero.
func fill(t *testing.T, v reflect.Value) {
	t.Helper()
	if v.Type() == reflect.TypeFor[metav1.Time]() {
		v.Set(reflect.ValueOf(metav1.NewTime(time.Unix(1_700_000_000, 0))))
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString("text \"of\" " + v.Type().Name())
	case reflect.Int16, reflect.Int32, reflect.Int64, reflect.Int:
		v.SetInt(-7)
	case reflect.Uint8:
		v.SetUint(200)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fill(t, v.Index(0))
		fill(t, v.Index(1))
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fill(t, v.Elem())
	default:
		t.Fatalf("no value for a %s; add one", v.Type())
	}
}

// TestInventorySize measures the compact form.
func TestInventorySize(t *testing.T) {
	items := typical(10_000)
	roundTrip(t, items)
	data, err := api.EncodeInventory(items)
	if err != nil {
		t.Fatal(err)
	}
	s := api.ComponentStatus{CompactInventory: base64.StdEncoding.EncodeToString(data)}
	readable, err := json.Marshal(items)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("10,000 items: %d bytes compact, %d as they are", len(s.CompactInventory), len(readable))
	if len(s.CompactInventory) > 660_000 {
		t.Errorf("%d bytes, want 66 for each item at most", len(s.CompactInventory))
	}
	again, err := s.Items(nil)
	if err != nil || cmp.Diff(items, again) != "" {
		t.Errorf("the items are not the same: %v", err)
	}
}

// TestDamagedInventory: whatever is done to a compact form, it is not read as another one.
func TestDamagedInventory(t *testing.T) {
	items := typical(20)
	data, err := api.EncodeInventory(items)
	if err != nil {
		t.Fatal(err)
	}
	for at := range data {
		for _, flip := range []byte{1, 0x80, 0xff} {
			damaged := append([]byte{}, data...)
			damaged[at] ^= flip
			if again, err := api.DecodeInventory(damaged); err == nil && cmp.Diff(items, again) != "" {
				t.Fatalf("byte %d ^ %x: read as something else", at, flip)
			}
		}
	}
	for n := range data {
		if _, err := api.DecodeInventory(data[:n]); err == nil && n < len(data)-5 {
			t.Fatalf("%d of %d bytes are accepted", n, len(data))
		}
	}
	data[1]++
	s := api.ComponentStatus{CompactInventory: base64.StdEncoding.EncodeToString(data)}
	_, err = s.Items(nil)
	var unreadable *api.InventoryError
	if !errors.As(err, &unreadable) || !strings.Contains(err.Error(), "run the release that wrote it") || !strings.Contains(err.Error(), "status.compactInventory") {
		t.Errorf("another version: error %v", err)
	}
}

func FuzzDecodeInventory(f *testing.F) {
	for _, n := range []int{0, 1, 30} {
		data, err := api.EncodeInventory(typical(n))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		items, err := api.DecodeInventory(data)
		if err != nil {
			return
		}
		again, err := api.EncodeInventory(items)
		if err != nil {
			t.Fatal(err)
		}
		same, err := api.DecodeInventory(again)
		if err != nil || cmp.Diff(items, same) != "" {
			t.Errorf("read, written and read again, it is not the same: %v", err)
		}
	})
}

// stored is a compact inventory as clusters have it. It stays as it is when the form changes: see SCOPE.md.
const stored = "aQGHQCMEjJBNSwNBDIa3VYr4M97zLKVehDnZWhAP4gd4Eg+xk90OtpkwH1uX4h/yR4qsYG+i1+RJ8uQdjz9HH0d7dByTDwKLbgaDVy8OFpdBGt/ekMJAaMtJacWwSOvwU4IFDBovLUeNXjIs5vfXy8X88Wqxa2Gga0oD9sDkehikTLmkYXuJkSXjfY82hqKwINUE84vNknUT+u0w8ocOuaDZB7kLG7/qYeGbukjYCTsYFHWU+dBLierQcYzeMQwcK4tLtwL7hOkhgelwZJr5LSc8/+epanR68o0rtTyZlHpW6rNJRS+r4+rivKq+AgAA//8="

// TestStoredInventory: what a released version has written is read by all later ones.
func TestStoredInventory(t *testing.T) {
	t.Parallel()
	data, err := base64.StdEncoding.DecodeString(stored)
	if err != nil {
		t.Fatal(err)
	}
	got, err := api.DecodeInventory(data)
	if err != nil {
		t.Fatal(err)
	}
	want := []api.InventoryItem{
		{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "texts", UID: "u-1", Digest: "abc", Phase: api.PhaseReady, Status: "Current", Fingerprint: "AQIDBAUGBwg@7"},
		{
			Group: "apps", Version: "v1", Kind: "Deployment", Namespace: "shop", Name: "page", UID: "u-2", Phase: api.PhaseReady, Status: "Current",
			Policies: api.Policies{AdoptionPolicy: api.AdoptionPolicyIfUnowned, UpdatePolicy: api.UpdatePolicySsaOverride}, DependsOn: []string{"/ConfigMap/shop/texts"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
