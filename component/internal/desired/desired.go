package desired

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/health"
	"github.com/trimtab-dev/trimtab/internal/fingerprint"
)

// Options are what [Normalize] must know of the operator, the component and the target cluster.
type Options struct {
	// Name is the operator's name, the prefix of its annotations and its label: "op.test" as in
	// "op.test/apply-order".
	Name string
	// OwnerID identifies the component: <cluster>/<namespace>/<name>.
	OwnerID string
	// OwnerUID is the UID of the component.
	OwnerUID string
	// Generation is the component's metadata.generation.
	Generation int64
	// Namespace is where namespaced objects go that name no namespace.
	Namespace string
	// Policies are the operator's defaults. The first four must not be empty.
	Policies api.Policies
	// Scope reports whether the target cluster serves a kind in a version, and whether the kind is
	// namespaced. It is not asked about kinds that a CustomResourceDefinition of the set defines. A nil Scope knows no kind.
	Scope func(kind schema.GroupKind, version string) (namespaced, known bool)
	// Missing reports whether an APIService of the set is known not to work yet: Scope is not asked about
	// its kinds then. Nil means that it is always asked.
	Missing func(definition api.InventoryItem) bool
	// Scheme names the kinds of typed objects that do not carry their kind. It is used for nothing
	// else, and may be nil if all objects are untyped.
	Scheme *runtime.Scheme
	// HealthRule checks the rule in the annotation of an object of a kind. Nil accepts all.
	HealthRule func(kind schema.GroupKind, rule string) error
	// Hooks: the objects are hooks of one of the events of [EventKey]. Without that, none may be one.
	Hooks bool
	// ManagedTypes are types that the component adds to the API in other ways than by a
	// CustomResourceDefinition or an APIService in the set. They may contain "*".
	ManagedTypes []api.TypeInfo
}

// Object is one object that the component is to have.
type Object struct {
	// Item is what the inventory records once the object was applied: all policies are filled in,
	// DependsOn has explicit and implicit edges, sorted, and Digest is that of Manifest. What is only
	// known of a live object (UID, Fingerprint, Phase, Status) is empty.
	Item api.InventoryItem
	// Manifest is what is applied: with its namespace, the label and annotations of the owner, the
	// digest, and without the annotations that are meant for the operator but those about its health.
	Manifest *unstructured.Unstructured
	// Purge is the wave at whose end the object is deleted again. Nil means that it stays.
	Purge *int16
	// Rank orders objects of one wave when they are applied, DeleteRank when they are deleted: lower
	// ones first. Ranks break ties; edges do not depend on them.
	Rank, DeleteRank int
	// Managed reports whether the object is an instance of a type that the component adds to the
	// API, as [Instances] finds them. Such objects are applied last in their wave, and deleted first.
	Managed bool
	// Unserved reports whether the target cluster will only serve the object's kind once an APIService
	// of the set works. The kind is taken for a namespaced one before that. If it is not, the
	// object's key changes then; an object with the earlier key cannot exist.
	Unserved bool
	// Ignored are fields that are left to others. Manifest does not have them.
	Ignored []fingerprint.Path
	// Left are fields of controllers that the manifest as it was rendered does not have. What these
	// write stays when the object is replaced or taken over.
	Left []fingerprint.Path
	// Twin is the digest of the manifest with its replicas left to an autoscaler: see Autoscaled. It is empty
	// if there are no replicas to leave. Of the result of Autoscaled it is the digest with them.
	Twin string
	// Initial is the manifest of a new object: it has fields that are ignored afterwards. Nil means that
	// it is Manifest.
	Initial *unstructured.Unstructured
	// Expires: the object is a Job whose manifest has it deleted some time after it has finished.
	Expires bool
	// AcceptDataLoss: the object may be re-created although what it contains is lost with it.
	AcceptDataLoss bool
	// Timeout is how long the object may take to become ready after it was applied. Zero means that there
	// is no limit.
	Timeout time.Duration
	// Uncounted: the object makes up for nothing that the component loses.
	Uncounted bool
	// Hints say how to read the object's status. Their annotation stays in the manifest, since the
	// health of an object is judged where it is seen.
	Hints health.Hints
	// Warnings are deprecated settings, one sentence each.
	Warnings []string
}

// draft is an object on its way through Normalize.
type draft struct {
	Object
	settings
	kind   schema.GroupKind
	needs  map[*draft]bool // what Item.DependsOn will name
	backed bool            // the set has the workload that serves it
}

// Normalize returns the objects that a component is to have, in canonical order: by apply order, rank
// and key. The result does not depend on the order of the objects. The objects are not modified, and
// the result shares nothing with them. The error joins all problems, one sentence each, in an order
// that is always the same; there are no objects then.
func Normalize(objects []client.Object, o Options) ([]Object, error) {
	s := &set{
		Options: o, byKey: map[string]*draft{}, places: map[*draft]string{}, kinds: map[string][]schema.GroupKind{},
		behindOf: map[*draft][]*draft{},
	}
	for i, obj := range objects {
		s.read(place(i), obj)
	}
	s.findTypes()
	for _, d := range s.all {
		s.locate(d)
	}
	s.index()
	s.autoscaled()
	s.connect()
	s.checkCycles()
	if err := s.join(); err != nil {
		return nil, err
	}
	items := make([]api.InventoryItem, len(s.all))
	for i, d := range s.all {
		d.depend()
		items[i] = d.Item
	}
	instances := Instances(items, s.ManagedTypes)
	out := make([]Object, len(s.all))
	for i, d := range s.all {
		d.Managed = instances[d.Item.Key()]
		out[i] = s.finish(d)
	}
	slices.SortFunc(out, func(a, b Object) int {
		return cmp.Or(cmp.Compare(a.Item.ApplyOrder, b.Item.ApplyOrder), cmp.Compare(a.Rank, b.Rank),
			cmp.Compare(a.Item.Key(), b.Item.Key()))
	})
	return out, nil
}

// set is the objects of one call of Normalize.
type set struct {
	Options
	problems

	all    []*draft
	places map[*draft]string // where the renderer put it, for messages
	byKey  map[string]*draft
	order  []*draft                      // by key
	kinds  map[string][]schema.GroupKind // by kind
	types  types

	behindOf map[*draft][]*draft // the workloads that answer for a Service
}

// locate gives an object its namespace, or takes it away.
func (s *set) locate(d *draft) {
	namespaced, known := s.scopeOf(d)
	switch given := d.Manifest.GetNamespace(); {
	case !known:
		// scopeOf reported it.
	case !namespaced:
		unstructured.RemoveNestedField(d.Manifest.Object, "metadata", "namespace")
	case given == "" && s.Namespace == "":
		s.add("%s has no namespace, and the component has none for it", d.title())
	case given == "":
		d.Manifest.SetNamespace(s.Namespace)
	}
	d.Item.Namespace = d.Manifest.GetNamespace()
}

// scopeOf reports whether the object's kind is namespaced: a definition in the set says so, or else the
// target cluster.
func (s *set) scopeOf(d *draft) (namespaced, known bool) {
	crd, defined := s.types.crds[d.kind]
	if defined && !slices.Contains(crd.served, d.Item.Version) {
		s.add("%s: version %s is not served by %s, which defines the kind; use %s", d.title(), d.Item.Version, crd.title(),
			alternatives(crd.served))
		return false, false
	}
	if defined {
		return crd.namespaced, true
	}
	service := s.types.services[schema.GroupVersion{Group: d.kind.Group, Version: d.Item.Version}]
	missing := service != nil && s.Missing != nil && s.Missing(service.Item)
	if s.Scope != nil && !missing {
		if namespaced, known = s.Scope(d.kind, d.Item.Version); known {
			return namespaced, true
		}
	}
	if service != nil {
		d.Unserved = true
		return true, true
	}
	s.add("%s: the target cluster does not serve kind %s in %s, and no CustomResourceDefinition in the set defines it; "+
		"check apiVersion and kind, or install the definition first", d.title(), d.Item.Kind, d.Manifest.GetAPIVersion())
	return false, false
}

// index finds objects by their keys, and objects that occur twice.
func (s *set) index() {
	for _, d := range s.all {
		first, taken := s.byKey[d.Item.Key()]
		if !taken {
			s.byKey[d.Item.Key()] = d
			continue
		}
		s.add("%s occurs twice: as %s of %s and as %s of %s; remove one", d.title(),
			s.places[first], first.Manifest.GetAPIVersion(), s.places[d], d.Manifest.GetAPIVersion())
	}
	for _, key := range slices.Sorted(maps.Keys(s.byKey)) {
		d := s.byKey[key]
		s.order = append(s.order, d)
		if same := s.kinds[d.kind.Kind]; !slices.Contains(same, d.kind) {
			s.kinds[d.kind.Kind] = append(same, d.kind)
		}
	}
}

// depend lists what an object needs.
func (d *draft) depend() {
	for need := range d.needs {
		d.Item.DependsOn = append(d.Item.DependsOn, need.Item.Key())
	}
	slices.Sort(d.Item.DependsOn)
}

// finish completes an object.
func (s *set) finish(d *draft) Object {
	r := d.rank()
	d.Rank, d.DeleteRank = r.apply, r.remove
	d.Item.Digest = digest(d.Manifest.Object, d.Item.ReconcilePolicy, s.Generation)
	d.Twin = s.twin(d)
	for _, m := range []*unstructured.Unstructured{d.Manifest, d.Initial} {
		if m == nil {
			continue
		}
		m.SetNamespace(d.Manifest.GetNamespace())
		m.SetLabels(with(m.GetLabels(), OwnerKey(s.Name), OwnerLabel(s.OwnerID)))
		annotations := with(m.GetAnnotations(), OwnerKey(s.Name), OwnerAnnotation(s.OwnerID, s.OwnerUID, d.Item.Key()))
		m.SetAnnotations(with(annotations, DigestKey(s.Name), d.Item.Digest))
	}
	return d.Object
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	m[key] = value
	return m
}

// title names an object as users do: kind, namespace and name.
func (d *draft) title() string { return titleOf(d.Item) }

func titleOf(i api.InventoryItem) string {
	if i.Namespace == "" {
		return i.Kind + " " + i.Name
	}
	return i.Kind + " " + i.Namespace + "/" + i.Name
}
