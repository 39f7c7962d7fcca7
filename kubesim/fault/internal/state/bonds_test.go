package state_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// fields are those of a state that are masked in these tests.
func fields(objects ...string) []history.Field {
	all := make([]history.Field, len(objects))
	for i, o := range objects {
		all[i].Object, all[i].Path, _ = strings.Cut(o, "|")
	}
	return all
}

// cluster is a Secret, a Database and an external queue with such fields.
func cluster(t testing.TB, password, spec, queue string) history.State {
	t.Helper()
	o := state.Options{Masked: fields(
		"secrets default/shop-"+"uid(databases.demo.dev default/shop)|data.password", "databases.demo.dev default/shop|spec.auth", "external queue q|state")}
	coded := base64.StdEncoding.EncodeToString([]byte(password))
	s := object(t, "secrets", fmt.Sprintf("{apiVersion: v1, kind: Secret, metadata: {name: shop-%s, namespace: default}, data: {password: %q}}", uid1, coded))
	d := object(t, "databases.demo.dev", fmt.Sprintf("{apiVersion: demo.dev/v1, kind: Database, metadata: {name: shop, namespace: default, uid: %s}, spec: {auth: %q}}", uid1, spec))
	return state.Of([]state.Object{s, d}, []history.Resource{{Kind: "queue", ID: "q", State: queue}}, o)
}

func TestBonds(t *testing.T) {
	const secret, auth, queue = "secrets default/shop-uid(databases.demo.dev default/shop) data.password", "databases.demo.dev default/shop spec.auth", "external queue q state"
	in := func(format, password string) string { return fmt.Sprintf(format, password) }
	coded := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	tests := map[string]struct {
		why         string
		spec, queue func(password string) string
		want        []string // besides that each is there
	}{
		"equal":           {"two copies", func(p string) string { return p }, func(p string) string { return p }, []string{auth + " = " + secret, queue + " = " + secret}},
		"encoded":         {"Kubernetes encodes a CA", coded, func(p string) string { return coded(p + "\n") }, []string{auth + " = " + secret, queue + " = " + secret}},
		"a part":          {"a URL has a password", func(p string) string { return in("https://user:%s@host", p) }, func(string) string { return "x" }, []string{secret + " in " + auth}},
		"an encoded part": {"a kubeconfig has a CA", func(p string) string { return coded("ca: " + coded(p) + "\nuser: me") }, func(string) string { return "x" }, []string{secret + " in " + auth}},
		"nothing":         {"each has its own", func(p string) string { return "another" + strings.ToLower(p) }, func(p string) string { return "a third " + p[1:] }, nil},
		"short":           {"equal by chance", func(p string) string { return p[len(p)-1:] }, func(p string) string { return p[len(p)-1:] }, nil},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			var runs []history.State
			for _, password := range []string{"ABCDEFGHIJ1", "KLMNOPQRST2", "UVWXYZABCD3"} {
				runs = append(runs, cluster(t, password, tt.spec(password), tt.queue(password)))
			}
			var got []string
			bonds := state.Bonds(runs)
			for _, b := range bonds {
				switch {
				case b.Within:
					got = append(got, b.Of.String()+" in "+b.With.String())
				case b.With != history.Field{}:
					got = append(got, b.Of.String()+" = "+b.With.String())
				}
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s: bonds (-want +got):\n%s", tt.why, diff)
			}
			want := runs[0]
			want.Bonds = bonds
			if !state.Matches(want, runs[1]) {
				t.Errorf("an undisturbed run does not match another one: %v", state.Differences(want, runs[1]))
			}
			other := cluster(t, "another password", tt.spec("ABCDEFGHIJ1"), tt.queue("ABCDEFGHIJ1"))
			if broken := len(state.Differences(want, other)); broken != len(tt.want) || state.Matches(want, other) != (broken == 0) {
				t.Errorf("with another password, %d bonds are broken, want %d", broken, len(tt.want))
			}
		})
	}
}

// TestBundle proves that a bundle may keep more than it has in the undisturbed runs.
func TestBundle(t *testing.T) {
	runs := []history.State{cluster(t, "authority one", "authority one", ""), cluster(t, "authority two", "authority two", "")}
	want := runs[0]
	want.Bonds = state.Bonds(runs)
	if got := cluster(t, "authority new", "authority old\nauthority new", ""); !state.Matches(want, got) {
		t.Errorf("got %v, want a match", state.Differences(want, got))
	}
	missing := state.Differences(want, cluster(t, "authority new", "", ""))
	if diff := cmp.Diff([]state.Difference{{
		Subject: "databases.demo.dev spec.auth", Text: "spec.auth of Database default/shop is missing, without the disturbance it has a random value",
	}}, missing); diff != "" {
		t.Errorf("differences (-want +got):\n%s", diff)
	}
}

// TestNumbered proves that nothing is learned of what has another number in each run.
func TestNumbered(t *testing.T) {
	var runs []history.State
	for _, password := range []string{"ABCDEFGHIJ1", "KLMNOPQRST2", "UVWXYZABCD3"} {
		masked := map[history.Field]string{}
		for _, f := range fields("secrets default/a-*1|data.x", "secrets default/b-*|data.x", "external user id(user 1 of databases default/a)|state", "external user id(user of databases default/a)|state") {
			masked[f] = password
		}
		runs = append(runs, history.State{Masked: masked})
	}
	for _, b := range state.Bonds(runs) {
		if name := b.Of.String() + b.With.String(); strings.Contains(name, "*1") || strings.Contains(name, "user 1") {
			t.Errorf("%s has a bond", name)
		}
	}
	if got := len(state.Bonds(runs)); got != 3 { // each has a value, and they are equal
		t.Errorf("got %d bonds, want 3", got)
	}
}
