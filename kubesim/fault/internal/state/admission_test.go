package state_test

import (
	"fmt"
	"testing"

	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/fault/internal/state"
)

// TestVolumesOfTokens proves that the random letters which admission gives to the volume with a Pod's token do not count, wherever
// they stand and however many there are, and that the names of other volumes do.
func TestVolumesOfTokens(t *testing.T) {
	of := func(first, second string) history.State {
		return state.Of([]state.Object{object(t, "pods", fmt.Sprintf(
			"{apiVersion: v1, kind: Pod, metadata: {name: db, annotations: {of: '%s and %s.'}}, spec: {volumes: [{name: %s}], containers: [{name: a, volumeMounts: [{name: %s}]}]}}",
			first, second, first, first))}, nil, state.Options{})
	}
	const a, b, c = "kube-api-access-dg2zb", "kube-api-access-x7k4p", "kube-api-access-9m2cd"
	if diff := state.Diff(of(a, b), of(c, a)); diff != "" {
		t.Errorf("the letters count:\n%s", diff)
	}
	for _, other := range []history.State{of("token-dg2zb", b), of(a, "token-dg2zb")} {
		if state.Equal(of(a, b), other) {
			t.Errorf("another volume is like that with the token:\n%v", other)
		}
	}
	if state.Equal(of(a, "token-dg2zb"), of(a, "token-x7k4p")) {
		t.Error("the letters of other names do not count")
	}
}
