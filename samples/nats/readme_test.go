package nats_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trimtab-dev/trimtab/external"
)

// What the README says of re-creation is what NATS was seen to do.
func TestReadmeSaysWhatNeedsRecreation(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[string][]string{
		"Stream": recreated(streamChanges()), "Consumer": recreated(consumerChanges()), "KeyValue": recreated(keyValueChanges()),
	} {
		row := regexp.MustCompile(`(?m)^\| ` + kind + " \\| (`.*`) \\|$").FindStringSubmatch(string(readme))
		if row == nil {
			t.Errorf("the README does not say what of a %s needs re-creation", kind)
			continue
		}
		wantDiff(t, kind, want, strings.Split(strings.ReplaceAll(row[1], "`", ""), ", "))
	}
}

func recreated[S any](cases map[string]change[S]) []string {
	fields := map[string]bool{}
	for name, tc := range cases {
		if field, _, _ := strings.Cut(name, ","); tc.effect == external.Recreate {
			fields[field] = true
		}
	}
	return slices.Sorted(maps.Keys(fields))
}
