package external_test

import (
	"net/http"
	"testing"

	"github.com/trimtab-dev/trimtab/external/externaltest"
	"github.com/trimtab-dev/trimtab/internal/thing"
)

// TestConformance checks the drivers of the tests of this package as their authors would.
func TestConformance(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]driver[*thing.Thing]{"things": named{}, "things whose names nobody chooses": things{}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			externaltest.Run(t, d, externaltest.Fixture[*thing.Thing, *cloudClient]{
				Client:  &cloudClient{base: newCloud(t).URL, http: http.DefaultClient},
				New:     func(string) *thing.Thing { return &thing.Thing{Spec: thing.Spec{Size: 1, Tier: "tin"}} },
				Options: options{UniqueNames: true},
				Changes: map[string]func(*thing.Thing){
					"size": func(o *thing.Thing) { o.Spec.Size = 2 },
					"tier": func(o *thing.Thing) { o.Spec.Tier = "gold" },
				},
			})
		})
	}
}
