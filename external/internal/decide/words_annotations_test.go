package decide

import (
	"maps"
	"slices"
	"testing"
)

// TestGrant checks that the first obstacle is named, and a value that keeps what is allowed now.
func TestGrant(t *testing.T) {
	tests := map[string]struct {
		why     string
		grant   Grant
		letters string
		want    string
	}{
		"annotation": {
			"only the annotation is in the way, and keeps its letters",
			Grant{Author: "cud", Operator: "cud", Annotation: "c"},
			"u",
			`; set annotation trimtab.dev/access-permissions to "cu" to allow it`,
		},
		"two letters": {
			"a recreation is a deletion and a create",
			Grant{Author: "cud", Operator: "cud"},
			"cd",
			`; set annotation trimtab.dev/access-permissions to "cd" to allow it`,
		},
		"operator": {
			"no annotation can allow more than the operator",
			Grant{Author: "cud", Operator: "u", Namespace: "shop"},
			"cd",
			"; whoever runs the operator can allow it with --access-limit shop=cud",
		},
		"operator, without namespaces": {
			"the flag then has no namespace",
			Grant{Author: "cud", Operator: "c"},
			"u",
			"; whoever runs the operator can allow it with --access-limit cu",
		},
		"author": {
			"no flag can allow more than the author",
			Grant{Author: "c", Operator: "c", Annotation: "c"},
			"u",
			"; this operator is built without that permission",
		},
	}
	for _, name := range slices.Sorted(maps.Keys(tests)) {
		test := tests[name]
		t.Run(name, func(t *testing.T) {
			if got := test.grant.to(test.letters); got != test.want {
				t.Errorf("%s: %q, want %q", test.why, got, test.want)
			}
		})
	}
}
