package loop_test

import (
	"context"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/trigger"
)

// Tank is a kind whose objects may be fed by another Tank. controller-gen writes its CRD and the
// methods that copy it.
type Tank struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   TankSpec   `json:"spec"`
	Status TankStatus `json:"status,omitzero"`
}

// TankSpec is what a user asks for.
type TankSpec struct {
	Litres int    `json:"litres"`
	FedBy  string `json:"fedBy,omitempty"`
}

// TankStatus has what the loop writes and what the reconciler adds.
type TankStatus struct {
	api.Status `json:",inline"`
	Level      string `json:"level,omitempty"`
}

// TrimtabStatus lets the loop write conditions, state and message.
func (t *Tank) TrimtabStatus() *api.Status { return &t.Status.Status }

// DeepCopyObject implements runtime.Object.
func (t *Tank) DeepCopyObject() runtime.Object {
	out := *t
	metadata := &t.ObjectMeta
	metadata.DeepCopyInto(&out.ObjectMeta)
	out.Status.Status = *t.TrimtabStatus().DeepCopy()
	return &out
}

// TankList is a list of Tanks.
type TankList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Tank `json:"items"`
}

// DeepCopyObject implements runtime.Object.
func (l *TankList) DeepCopyObject() runtime.Object {
	out := *l
	out.Items = make([]Tank, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Tank)
	}
	return &out
}

// region: reconciler

// plumber reports the level of a Tank as soon as the Tank that feeds it exists.
type plumber struct{}

func (plumber) Reconcile(ctx context.Context, r *loop.Run[*Tank]) loop.Outcome {
	if name := r.Obj.Spec.FedBy; name != "" {
		key := types.NamespacedName{Namespace: r.Obj.Namespace, Name: name}
		if err := r.Client().Get(ctx, key, &Tank{}); err != nil {
			return loop.WaitFor("NoSource", loop.Dep{Kind: "Tank", Name: name, Why: "does not exist"})
		}
	}
	r.Obj.Status.Level = fmt.Sprintf("%d litres", r.Obj.Spec.Litres)
	return loop.Done()
}

// endregion: reconciler

// A controller of Tanks that wait for other Tanks by name. The permissions it needs follow from what
// it is made of. It runs in a manager by SetupWithManager, or in a binary by operator.Main.
func ExampleNew() {
	fedBy := trigger.Reference[*Tank]{
		To: &Tank{},
		Names: func(t *Tank) []types.NamespacedName {
			return []types.NamespacedName{{Namespace: t.Namespace, Name: t.Spec.FedBy}}
		},
	}
	c := loop.New(plumber{}, loop.Options[*Tank]{Sources: []trigger.Source[*Tank]{fedBy}})

	scheme := runtime.NewScheme()
	scheme.AddKnownTypes(schema.GroupVersion{Group: "example.org", Version: "v1"}, &Tank{}, &TankList{})
	permissions, err := c.Needs(scheme)
	if err != nil {
		panic(err)
	}
	for _, p := range permissions {
		fmt.Println(p.Kind+"/"+p.Subresource, strings.Join(p.Verbs, ","))
	}
	// Output:
	// Tank/ get,list,watch,patch
	// Tank/status patch
	// Event/ create,patch
	// Tank/ list,watch
}
