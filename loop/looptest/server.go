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
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/trimtab-dev/trimtab/testenv"
)

// server is an API server in memory: HTTP before controller-runtime's fake client. It adds what that lacks and passes
// rely on: UIDs, generations, preconditions, and the garbage collection of what had owners.
type server struct {
	mapper  meta.RESTMapper
	objects client.Client

	mu      sync.Mutex // one request at a time
	live    map[objectID]*unstructured.Unstructured
	uids    int
	changes []change // not yet told
	watches []*watching
	changed func(change)
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
	selector labels.Selector
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
	query := req.URL.Query()
	r := request{Request: testenv.ParseRequest(req), owner: query.Get("fieldManager"), force: query.Get("force") == "true"}
	mime, _, _ := strings.Cut(req.Header.Get("Content-Type"), ";")
	r.mime = types.PatchType(mime)
	var err error
	if req.Body != nil {
		if r.body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	if r.selector, err = labels.Parse(query.Get("labelSelector")); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
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
		return list, s.objects.List(req.Context(), list, client.InNamespace(r.Namespace), client.MatchingLabelsSelector{Selector: r.selector})
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
		if err := json.Unmarshal(r.body, &u.Object); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if r.Verb == "create" && u.GetName() == "" {
		s.uids++
		u.SetName(fmt.Sprintf("%s%d", u.GetGenerateName(), s.uids))
	}
	u.SetNamespace(r.Namespace)
	before := s.live[idOf(u)]
	if err := r.precondition(before); err != nil {
		return nil, err
	}
	if before == nil && r.Verb == "apply" {
		u.SetResourceVersion("")
	}
	if err := s.carryOut(ctx, r, u); err != nil {
		return nil, err
	}
	after, err := s.settle(ctx, idOf(u), before)
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
	after := &unstructured.Unstructured{}
	after.SetGroupVersionKind(id.kind)
	if err := s.objects.Get(ctx, id.NamespacedName, after); err != nil {
		if before == nil || !apierrors.IsNotFound(err) {
			return nil, client.IgnoreNotFound(err)
		}
		delete(s.live, id)
		s.note(change{id: id, before: before, at: time.Now()})
		return nil, s.collect(ctx, before.GetUID())
	}
	if s.complete(before, after) {
		if err := s.objects.Update(ctx, after); err != nil {
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
	bare := last.DeepCopy()
	bare.SetFinalizers(nil)
	if err := s.objects.Update(ctx, bare); err != nil {
		return err
	}
	if err := client.IgnoreNotFound(s.objects.Delete(ctx, bare)); err != nil {
		return err
	}
	_, err := s.settle(ctx, id, last)
	return err
}

// tell delivers what changed, without the lock: whoever is told may read.
func (s *server) tell() {
	s.mu.Lock()
	changes, to := s.changes, s.changed
	s.changes = nil
	s.mu.Unlock()
	for _, c := range changes {
		if to != nil {
			to(c)
		}
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
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, obj); err != nil {
		return nil, err
	}
	return obj, nil
}
