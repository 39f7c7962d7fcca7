package trimtab_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
	"github.com/trimtab-dev/trimtab/operator"
)

// Record is the kind. Its objects stand for DNS records.
type Record struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitzero"`

	Spec   RecordSpec         `json:"spec,omitzero"`
	Status api.ExternalStatus `json:"status,omitzero"`
}

// RecordSpec is the desired state of a DNS record.
type RecordSpec struct {
	Address string `json:"address"`
	// TTL is the time to live in seconds. Nil means that it is not managed.
	TTL *int `json:"ttl,omitempty"`
}

func (r *Record) TrimtabStatus() *api.Status           { return &r.Status.Status }
func (r *Record) TrimtabExternal() *api.ExternalStatus { return &r.Status }

// records is the driver of the kind Record.
type records struct{}

// ExternalName returns the name of the record in the external API.
func (records) ExternalName(r *Record) (string, error) { return r.Name + ".example.org", nil }

func (records) Observe(_ context.Context, r external.ObserveRequest[*Record, *zone]) (external.Observation[entry], error) {
	e, found := r.Client.get(r.ID)
	if !found {
		return external.Missing[entry](), nil
	}
	return external.Available(e, external.MarkOf(e.labels)), nil
}

func (records) Compare(r external.CompareRequest[*Record, entry]) external.Changes {
	return external.Diff(
		external.Field("spec.address", r.Object.Spec.Address, r.Have.address),
		external.Field("spec.ttl", r.Object.Spec.TTL, r.Have.ttl), // nil is not compared
	)
}

func (records) Create(_ context.Context, r external.CreateRequest[*Record, *zone]) (external.CreateResponse[entry], error) {
	want := entry{address: r.Object.Spec.Address, ttl: r.Object.ttl(300), labels: r.Mark.On(nil)}
	return external.CreateResponse[entry]{}, r.Client.put(r.ID, want)
}

func (records) Update(_ context.Context, r external.UpdateRequest[*Record, *zone, entry]) (external.UpdateResponse[entry], error) {
	want := entry{address: r.Object.Spec.Address, ttl: r.Object.ttl(r.Have.ttl), labels: r.Have.labels}
	return external.UpdateResponse[entry]{}, r.Client.put(r.ID, want)
}

func (records) Delete(_ context.Context, r external.DeleteRequest[*Record, *zone]) (external.DeleteResponse, error) {
	return external.DeleteResponse{}, r.Client.remove(r.ID)
}

func (r *Record) ttl(unset int) int {
	if r.Spec.TTL == nil {
		return unset
	}
	return *r.Spec.TTL
}

// dnsOperator describes the operator. Its main function would be
//
//	func main() { operator.Main(dnsOperator()) }
func dnsOperator() operator.Options {
	connect := func(context.Context) (*zone, error) { return &zone{entries: map[string]entry{}}, nil }
	return operator.Options{
		Name:        "dns-operator",
		AddToScheme: addToScheme,
		Controllers: func() ([]operator.Controller, error) {
			return []operator.Controller{external.New(records{}, external.Options[*Record, *zone]{Connect: connect})}, nil
		},
	}
}

// The binary runs the controllers. Without a cluster, it prints the manifests that install it; here
// the roles, as "dns-operator manifests rbac" does. They are derived from the controllers, so no
// permission is missing and none is superfluous.
func Example() {
	var printed bytes.Buffer
	code := operator.Run(context.Background(), []string{"manifests", "rbac"}, &printed, os.Stderr, dnsOperator())
	fmt.Println("exit code", code)
	for object := range strings.SplitSeq(printed.String(), "---\n") {
		if strings.Contains(object, "kind: ClusterRole\n") && strings.Contains(object, "rules:") {
			fmt.Print(object)
		}
	}
	// Output:
	// exit code 0
	// apiVersion: rbac.authorization.k8s.io/v1
	// kind: ClusterRole
	// metadata:
	//   labels:
	//     app.kubernetes.io/name: dns-operator
	//   name: dns-operator
	// rules:
	// - apiGroups:
	//   - ""
	//   resourceNames:
	//   - kube-system
	//   resources:
	//   - namespaces
	//   verbs:
	//   - get
	// - apiGroups:
	//   - dns.example.org
	//   resources:
	//   - records
	//   verbs:
	//   - get
	//   - list
	//   - watch
	//   - patch
	// - apiGroups:
	//   - dns.example.org
	//   resources:
	//   - records/status
	//   verbs:
	//   - patch
	// - apiGroups:
	//   - events.k8s.io
	//   resources:
	//   - events
	//   verbs:
	//   - create
	//   - patch
	// - apiGroups:
	//   - trimtab.dev
	//   resources:
	//   - records
	//   verbs:
	//   - update
}

// zone stands for the client library of the external API.
type zone struct {
	mu      sync.Mutex
	entries map[string]entry
}

// entry is a record in the external API.
type entry struct {
	address string
	ttl     int
	labels  map[string]string
}

func (z *zone) get(name string) (entry, bool) {
	z.mu.Lock()
	defer z.mu.Unlock()
	e, found := z.entries[name]
	return e, found
}

func (z *zone) put(name string, e entry) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	z.entries[name] = e
	return nil
}

func (z *zone) remove(name string) error {
	z.mu.Lock()
	defer z.mu.Unlock()
	delete(z.entries, name)
	return nil
}

// In a real operator, controller-gen generates the following code.

// RecordList is a list of records.
type RecordList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitzero"`
	Items           []Record `json:"items"`
}

func addToScheme(s *runtime.Scheme) error {
	v1 := schema.GroupVersion{Group: "dns.example.org", Version: "v1"}
	s.AddKnownTypes(v1, &Record{}, &RecordList{})
	metav1.AddToGroupVersion(s, v1)
	return nil
}

func (r *Record) deepCopy() *Record {
	c := *r
	meta := &r.ObjectMeta
	meta.DeepCopyInto(&c.ObjectMeta)
	r.Status.DeepCopyInto(&c.Status)
	if r.Spec.TTL != nil {
		c.Spec.TTL = new(*r.Spec.TTL)
	}
	return &c
}

func (r *Record) DeepCopyObject() runtime.Object { return r.deepCopy() }

func (l *RecordList) DeepCopyObject() runtime.Object {
	c := &RecordList{TypeMeta: l.TypeMeta}
	meta := &l.ListMeta
	meta.DeepCopyInto(&c.ListMeta)
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].deepCopy())
	}
	return c
}
