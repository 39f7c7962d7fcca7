package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/trimtab-dev/trimtab/cmd/trimtab/internal/model"
)

// objectOf reads an object from words: Kind/name, a sign for how ready it is (+, - or nothing), and @ and a wave.
func objectOf(text string, below ...model.Object) model.Object {
	o := model.Object{Relation: "owned", Objects: below}
	text, order, waves := strings.Cut(text, "@")
	if waves {
		o.Wave = new(int16)
		_, _ = fmt.Sscan(order, o.Wave)
	}
	switch last := len(text) - 1; text[last] {
	case '+':
		o.Ready, text = metav1.ConditionTrue, text[:last]
	case '-':
		o.Ready, text = metav1.ConditionFalse, text[:last]
	}
	o.Kind, o.Name, _ = strings.Cut(text, "/")
	return o
}

// lines returns a tree in lines: the objects, what they have to do with the first one, and the waves and folds between.
func (b *branch) lines(indent string) []string {
	all := []string{strings.TrimSpace(indent + b.String() + " " + string(b.Blocks))}
	for _, w := range b.Waves {
		if w.Order != nil {
			all = append(all, fmt.Sprintf("%s wave %d ready=%v", indent, *w.Order, w.Ready))
		}
		for _, next := range w.Branches {
			all = append(all, next.lines(indent+"> ")...)
		}
		for _, f := range w.Folded {
			names := []string{}
			for _, folded := range f.Branches {
				names = append(names, folded.Name)
			}
			all = append(all, fmt.Sprintf("%s> %d %s: %s", indent, len(f.Branches), f.Kind, strings.Join(names, " ")))
		}
	}
	return all
}

func TestTree(t *testing.T) {
	t.Parallel()
	links := func(names ...string) (all []model.Link) {
		for _, n := range names {
			all = append(all, model.Link{Object: objectOf(n)})
		}
		return all
	}
	external := objectOf("external/i-1")
	external.Relation = "external"
	tests := map[string]struct {
		why   string
		o     model.Object
		chain []model.Link
		want  []string
	}{
		"ready": {"there is no path", objectOf("App/a+", objectOf("Deployment/d+")), nil, []string{"App/a", "> Deployment/d"}},
		"path": {
			"it leads through the tree, and not through an object of the same kind", objectOf("App/a-", objectOf("Deployment/d-", objectOf("Pod/p-"), objectOf("Pod/q-")), objectOf("Deployment/e-")),
			links("App/a", "Deployment/d", "Pod/p"),
			[]string{"App/a is blocked", "> Deployment/d blocks", "> > Pod/p root cause", "> > Pod/q", "> Deployment/e"},
		},
		"itself": {"it waits for nothing else", objectOf("App/a-", objectOf("Deployment/d-")), links("App/a"), []string{"App/a root cause", "> Deployment/d"}},
		"named": {
			"what it names is not its own, and is put below it", objectOf("App/a-", objectOf("ConfigMap/c")), links("App/a", "Database/d-", "Secret/s-"),
			[]string{"App/a is blocked", "> Database/d blocks", "> > Secret/s root cause", "> ConfigMap/c"},
		},
		"waves": {
			"in their order, and what has none comes last", objectOf("App/a-", objectOf("Job/late@10"), objectOf("Pod/owned"), objectOf("Job/broken-@2"), objectOf("Job/fine+@2"), objectOf("Job/early+@-1")),
			links("App/a", "Job/broken"),
			[]string{"App/a is blocked", " wave -1 ready=true", "> Job/early", " wave 2 ready=false", "> Job/broken root cause", "> Job/fine", " wave 10 ready=true", "> Job/late", "> Pod/owned"},
		},
		"folds": {
			"three of a kind that are fine are one line; what is not fine, or has something below that is not, stays", objectOf("App/a-",
				objectOf("ConfigMap/a"), objectOf("Deployment/broken+", objectOf("Pod/p-")), objectOf("ConfigMap/b"), objectOf("Deployment/x+"), objectOf("ConfigMap/c"), objectOf("Deployment/y+", objectOf("Pod/q+")),
				objectOf("Secret/one"), objectOf("Secret/two"), objectOf("Deployment/z+"), external, external, external),
			links("App/a", "Deployment/broken", "Pod/p"),
			[]string{
				"App/a is blocked", "> Deployment/broken blocks", "> > Pod/p root cause", "> Secret/one", "> Secret/two", "> external/i-1", "> external/i-1", "> external/i-1",
				"> 3 ConfigMap: a b c", "> 3 Deployment: x y z",
			},
		},
		"folds of waves": {
			"those of one wave are together", objectOf("App/a+", objectOf("ConfigMap/a@1"), objectOf("ConfigMap/b@1"), objectOf("ConfigMap/c@2"), objectOf("ConfigMap/d@1")), nil,
			[]string{"App/a", " wave 1 ready=true", "> 3 ConfigMap: a b d", " wave 2 ready=true", "> ConfigMap/c"},
		},
		"on the path": {
			"an object on the path is not folded, although it is fine itself", objectOf("App/a-", objectOf("ConfigMap/a"), objectOf("ConfigMap/b"), objectOf("ConfigMap/c")), links("App/a", "ConfigMap/b"),
			[]string{"App/a is blocked", "> ConfigMap/a", "> ConfigMap/b root cause", "> ConfigMap/c"},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			before := fmt.Sprint(tt.o)
			tree := treeOf(tt.o, tt.chain)
			got := tree.lines("")
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tt.why, diff)
			}
			if fmt.Sprint(tt.o) != before {
				t.Error("the object was changed")
			}
		})
	}
	paused, deleting := objectOf("App/a+"), objectOf("App/a+")
	paused.Paused, deleting.Deleting = "true", true
	if slices.ContainsFunc([]model.Object{paused, deleting, objectOf("App/a-")}, fine) || !fine(objectOf("App/a+")) || !fine(objectOf("ConfigMap/c")) {
		t.Error("what is fine: an object that is ready or has nothing to be ready, and is neither paused nor deleted")
	}
}
