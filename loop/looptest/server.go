package looptest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/trimtab-dev/trimtab/testenv"
)

// server is an API server in memory: HTTP before controller-runtime's fake client. It adds what that lacks and passes
// rely on: UIDs, generations, preconditions, and the garbage collection of what had owners.
type server struct {
	kinds

	scheme  *runtime.Scheme
	tracker clienttesting.ObjectTracker // of objects
	objects client.Client

	mu      sync.Mutex // one request at a time
	live    map[objectID]*unstructured.Unstructured
	uids    int
	watches []*watching
	// changed queues a change for the cache of the process, and returns the function that delivers it. That is called without
	// the lock, because handlers may read.
	changed func(change) (show func())
	show    func()
}

// newServer returns a server that has some objects.
func newServer(ctx context.Context, scheme *runtime.Scheme, k kinds, objects []client.Object) (*server, error) {
	s := &server{kinds: k, scheme: scheme, tracker: newTracker(scheme), live: map[objectID]*unstructured.Unstructured{}}
	b := fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(k.mapper).WithStatusSubresource(k.custom...).
		WithObjectTracker(s.tracker).WithGlobalResourceVersionCounter().WithReturnManagedFields()
	var ids []objectID
	for _, obj := range objects {
		kind, err := apiutil.GVKForObject(obj, scheme)
		if err != nil {
			return nil, err
		}
		u, err := unstructuredOf(obj, kind)
		if err != nil {
			return nil, err
		}
		u.SetResourceVersion("")
		if err := errors.Join(s.scoped(kind, u), validate(nil, u)); err != nil {
			return nil, err
		}
		s.complete(nil, u)
		ids = append(ids, idOf(u))
		b = b.WithObjects(u)
	}
	s.objects = b.Build()
	for _, id := range ids {
		if _, err := s.settle(ctx, id, nil); err != nil {
			return nil, err
		}
	}
	return s, nil
}

type objectID struct {
	kind schema.GroupVersionKind
	types.NamespacedName
}

// change is an object before and after a write; nil if there was, or is, none.
type change struct {
	id            objectID
	before, after *unstructured.Unstructured
	at            time.Time
}

func idOf(o *unstructured.Unstructured) objectID {
	return objectID{kind: o.GroupVersionKind(), NamespacedName: client.ObjectKeyFromObject(o)}
}

// request is what a request asks for.
type request struct {
	testenv.Request

	kind schema.GroupVersionKind
	body []byte
	mime types.PatchType
	// owner is the field manager.
	owner    string
	force    bool
	dryRun   bool
	selector labels.Selector
	fields   fields.Selector
}

func (r request) empty() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(r.kind)
	u.SetNamespace(r.Namespace)
	u.SetName(r.Name)
	return u
}

// RoundTrip implements http.RoundTripper.
func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	answer, err := s.answer(req)
	code := http.StatusOK
	if err != nil {
		failure := apierrors.APIStatus(apierrors.NewInternalError(err))
		errors.As(err, &failure)
		status := failure.Status()
		status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
		answer, code = status, int(status.Code)
	} else if stream, ok := answer.(io.ReadCloser); ok {
		return &http.Response{StatusCode: code, Request: req, Header: http.Header{"Content-Type": []string{"application/json"}}, Body: stream}, nil
	} else if u, ok := answer.(*unstructured.Unstructured); ok && metadataAlone(req) {
		answer = metadataOf(u)
	}
	data, err := json.Marshal(answer)
	if err != nil {
		return nil, err
	}
	s.tell()
	return &http.Response{
		StatusCode: code, Request: req, Header: http.Header{"Content-Type": []string{"application/json"}}, Body: io.NopCloser(bytes.NewReader(data)),
	}, nil
}

func (s *server) answer(req *http.Request) (any, error) {
	r := request{Request: testenv.ParseRequest(req)}
	mime, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	r.mime = types.PatchType(mime)
	var err error
	if req.Body != nil {
		if r.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	if r, err = r.with(req.URL.Query()); err != nil {
		return nil, err
	}
	resource := schema.GroupVersionResource{Group: r.Group, Version: r.Version, Resource: r.Resource}
	if r.kind, err = s.mapper.KindFor(resource); err != nil {
		return nil, apierrors.NewGenericServerResponse(http.StatusNotFound, r.Verb, resource.GroupResource(), r.Name, "the scheme lacks the kind", 0, false)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Verb {
	case "get":
		return s.get(req.Context(), r)
	case "list":
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
		err := s.objects.List(req.Context(), list)
		list.Items = slices.DeleteFunc(list.Items, func(o unstructured.Unstructured) bool { return !r.selects(&o) })
		return list, err
	case "watch":
		return s.watch(req.Context(), req, r)
	case "create", "update", "patch", "apply", "delete":
		return s.write(req.Context(), r)
	}
	return nil, apierrors.NewMethodNotSupported(resource.GroupResource(), r.Verb)
}

func (s *server) get(ctx context.Context, r request) (*unstructured.Unstructured, error) {
	u := r.empty()
	return u, s.objects.Get(ctx, client.ObjectKeyFromObject(u), u)
}

// write carries out a write and all that follows from it.
func (s *server) write(ctx context.Context, r request) (any, error) {
	u := r.empty()
	if r.Verb == "create" || r.Verb == "update" || r.Verb == "apply" {
		if err := utiljson.Unmarshal(r.body, &u.Object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	u.SetNamespace(r.Namespace)
	if r.Verb == "create" && !s.whole[r.kind] {
		delete(u.Object, "status")
	}
	if r.Verb == "create" && u.GetName() == "" && u.GetGenerateName() != "" {
		s.uids++
		u.SetName(fmt.Sprintf("%s%d", u.GetGenerateName(), s.uids))
	}
	id := idOf(u)
	before := s.live[id]
	if err := r.precondition(before); err != nil {
		return nil, err
	}
	if before == nil && r.Verb == "apply" {
		u.SetResourceVersion("")
	}
	if err := s.carryOut(ctx, r, u); err != nil {
		return nil, err
	}
	after, err := s.stored(ctx, id)
	if err == nil && after != nil {
		err = validate(before, after)
	}
	switch {
	case err != nil:
		return nil, errors.Join(err, s.put(id, before))
	case r.dryRun || unchanged(before, after):
		err = s.put(id, before)
	default:
		after, err = s.settle(ctx, id, before)
	}
	if after == nil {
		return metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusSuccess}, err
	}
	return after, err
}

// precondition compares the UID and the version in a request with the object.
func (r request) precondition(live *unstructured.Unstructured) error {
	var sent struct {
		Metadata, Preconditions struct {
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		}
	}
	if r.Verb == "create" || r.mime == types.JSONPatchType {
		return nil
	}
	if err := json.Unmarshal(r.body, &sent); len(r.body) > 0 && err != nil {
		return apierrors.NewBadRequest(err.Error())
	}
	want := sent.Metadata
	if r.Verb == "delete" {
		want = sent.Preconditions
	}
	if live == nil || (want.UID == "" || want.UID == live.GetUID()) && (want.ResourceVersion == "" || want.ResourceVersion == live.GetResourceVersion()) {
		return nil // the fake client refuses to apply what has a UID and is not there
	}
	return apierrors.NewConflict(schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Name,
		errors.New("the object has been modified; please apply your changes to the latest version and try again"))
}

func (s *server) carryOut(ctx context.Context, r request, u *unstructured.Unstructured) error {
	owner := client.FieldOwner(r.owner)
	status := r.Subresource != ""
	switch {
	case r.Verb == "create":
		return s.objects.Create(ctx, u, owner)
	case r.Verb == "delete":
		return s.objects.Delete(ctx, u)
	case r.Verb == "update" && status:
		return s.objects.SubResource(r.Subresource).Update(ctx, u, owner)
	case r.Verb == "update":
		return s.objects.Update(ctx, u, owner)
	case r.Verb == "apply" && status:
		options := []client.SubResourceApplyOption{owner}
		if r.force {
			options = append(options, client.ForceOwnership)
		}
		return s.objects.SubResource(r.Subresource).Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	case r.Verb == "apply":
		options := []client.ApplyOption{owner}
		if r.force {
			options = append(options, client.ForceOwnership)
		}
		return s.objects.Apply(ctx, client.ApplyConfigurationFromUnstructured(u), options...)
	}
	var err error
	if patch := client.RawPatch(r.mime, r.body); status {
		err = s.objects.SubResource(r.Subresource).Patch(ctx, u, patch, owner)
	} else {
		err = s.objects.Patch(ctx, u, patch, owner)
	}
	if known := apierrors.APIStatus(nil); err != nil && !errors.As(err, &known) { // such as a test of a JSON patch
		return apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, r.Verb, schema.GroupResource{Group: r.Group, Resource: r.Resource}, r.Name, err.Error(), 0, true)
	}
	return err
}

// settle notes what became of an object by a write, and completes it.
func (s *server) settle(ctx context.Context, id objectID, before *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	after, err := s.stored(ctx, id)
	if err != nil {
		return nil, err
	}
	if after == nil {
		if before == nil {
			return nil, nil
		}
		delete(s.live, id)
		s.note(change{id: id, before: before, at: time.Now()})
		return nil, s.collect(ctx, before.GetUID())
	}
	if s.complete(before, after) {
		if err := s.put(id, after); err != nil {
			return nil, fmt.Errorf("complete %s %s: %w", id.kind.Kind, id, err)
		}
	}
	if before == nil || before.GetResourceVersion() != after.GetResourceVersion() {
		s.live[id] = after
		s.note(change{id: id, before: before, after: after, at: time.Now()})
	}
	return after, nil
}

// complete gives an object its UID, and its generation if it has a spec. It reports whether it changed anything.
func (s *server) complete(before, after *unstructured.Unstructured) (changed bool) {
	if before != nil && after.GetUID() == "" {
		after.SetUID(before.GetUID())
		after.SetCreationTimestamp(before.GetCreationTimestamp())
		changed = true
	}
	if after.GetUID() == "" {
		s.uids++
		after.SetUID(types.UID(fmt.Sprintf("uid-%d", s.uids)))
		after.SetCreationTimestamp(metav1.Now())
		changed = true
	}
	generation := after.GetGeneration()
	_, has := after.Object["spec"]
	switch {
	case !has:
	case before == nil:
		generation = max(generation, 1)
	case !sameSpec(before, after) || before.GetDeletionTimestamp().IsZero() && !after.GetDeletionTimestamp().IsZero():
		generation = before.GetGeneration() + 1
	}
	changed = changed || generation != after.GetGeneration()
	after.SetGeneration(generation)
	return changed
}

func sameSpec(a, b *unstructured.Unstructured) bool {
	for _, o := range []*unstructured.Unstructured{a, b} {
		for key := range o.Object {
			if key != "metadata" && key != "status" && !reflect.DeepEqual(a.Object[key], b.Object[key]) {
				return false
			}
		}
	}
	return true
}

// collect deletes the objects whose last owner is gone.
func (s *server) collect(ctx context.Context, owner types.UID) error {
	exists := func(r metav1.OwnerReference) bool {
		for _, o := range s.live {
			if o.GetUID() == r.UID {
				return true
			}
		}
		return false
	}
	var orphans []*unstructured.Unstructured
	for _, o := range s.live {
		refs := o.GetOwnerReferences()
		if slices.ContainsFunc(refs, func(r metav1.OwnerReference) bool { return r.UID == owner }) && !slices.ContainsFunc(refs, exists) {
			orphans = append(orphans, o)
		}
	}
	slices.SortFunc(orphans, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(string(a.GetUID()), string(b.GetUID()))
	})
	for _, o := range orphans {
		if err := s.objects.Delete(ctx, o.DeepCopy()); err != nil {
			return err
		}
		if _, err := s.settle(ctx, idOf(o), o); err != nil {
			return err
		}
	}
	return nil
}

// vanish removes an object at once, whatever finalizers it has.
func (s *server) vanish(ctx context.Context, id objectID) error {
	defer s.tell()
	s.mu.Lock()
	defer s.mu.Unlock()
	last := s.live[id]
	if last == nil {
		return fmt.Errorf("there is no %s %s", id.kind.Kind, id.NamespacedName)
	}
	if err := s.put(id, nil); err != nil {
		return err
	}
	_, err := s.settle(ctx, id, last)
	return err
}

// tell shows what changed.
func (s *server) tell() {
	s.mu.Lock()
	show := s.show
	s.mu.Unlock()
	if show != nil {
		show()
	}
}

// one returns an object, nil if there is none.
func (s *server) one(id objectID) *unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.live[id]
}

// all returns the objects in a fixed order.
func (s *server) all() []*unstructured.Unstructured {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*unstructured.Unstructured
	for _, o := range s.live {
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GetKind()+" "+client.ObjectKeyFromObject(a).String(), b.GetKind()+" "+client.ObjectKeyFromObject(b).String())
	})
	return all
}

// asForm returns an object in the form of another: typed, unstructured or metadata.
func asForm(form runtime.Object, u *unstructured.Unstructured) (client.Object, error) {
	if _, is := form.(*unstructured.Unstructured); is {
		return u.DeepCopy(), nil
	}
	obj, ok := reflect.TypeAssert[client.Object](reflect.New(reflect.TypeOf(form).Elem()))
	if !ok {
		return nil, fmt.Errorf("%T is no object", form)
	}
	data, err := json.Marshal(u.Object)
	if err != nil {
		return nil, err
	}
	return obj, utiljson.Unmarshal(data, obj)
}

// unstructuredOf returns an object as an API server has it. Not all kinds can be converted by their fields.
func unstructuredOf(o runtime.Object, kind schema.GroupVersionKind) (*unstructured.Unstructured, error) {
	data, err := json.Marshal(o)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, err
	}
	u.SetGroupVersionKind(kind)
	return u, nil
}
