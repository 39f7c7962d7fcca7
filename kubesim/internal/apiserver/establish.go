package apiserver

import (
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	definitionclient "k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset/typed/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/dynamic"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

func (s *Server) definitionClient(db *store.DB) (definitionclient.CustomResourceDefinitionInterface, error) {
	c, err := clientset.NewForConfig(inner{s, db}.config())
	if err != nil {
		return nil, err
	}
	return c.ApiextensionsV1().CustomResourceDefinitions(), nil
}

// concernsDefinitions tells whether a request may have given the controllers of CRDs work.
func (s *Server) concernsDefinitions(db *store.DB, info *request.RequestInfo) bool {
	switch {
	case !info.IsResourceRequest || slices.Contains([]string{"get", "list", "watch"}, info.Verb):
		return false
	case info.APIGroup == apiextensionsv1.GroupName:
		return info.Subresource == ""
	}
	d := definitionsOf.Of(db).byName(info.Resource + "." + info.APIGroup)
	return d != nil && d.DeletionTimestamp != nil
}

// tend does what the real server's controllers of CRDs do: accept names, establish, and delete
// the objects of a CRD that goes. It does so at once, so that a CRD is served when the answer
// to its creation arrives.
func (s *Server) tend(r *http.Request, db *store.DB) error {
	client, err := s.definitionClient(db)
	if err != nil {
		return err
	}
	ctx := context.WithoutCancel(r.Context())
	for before := int64(0); before != db.Revision(); { // a CRD that goes frees its names for another
		before = db.Revision()
		for _, d := range definitionsOf.Of(db) {
			if d.DeletionTimestamp == nil && d.hasItsNames() {
				continue
			}
			crd := d.CustomResourceDefinition.DeepCopy()
			if crd.DeletionTimestamp != nil {
				err = s.finish(ctx, db, client, crd)
			} else if accept(crd, definitionsOf.Of(db)) {
				_, err = client.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
			}
			if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
				return err
			}
		}
	}
	return nil
}

// hasItsNames reports whether all names of a CRD are accepted.
func (d *definition) hasItsNames() bool {
	return equality.Semantic.DeepEqual(d.Spec.Names, d.Status.AcceptedNames)
}

// accept brings the status of a CRD that does not have all its names up to date and reports whether there was anything
// to do.
func accept(crd *apiextensionsv1.CustomResourceDefinition, all definitions) bool {
	before := crd.Status.DeepCopy()
	names := namesOf(crd, all)
	apihelpers.SetCRDCondition(crd, names)
	established := apihelpers.IsCRDConditionTrue(crd, apiextensionsv1.Established)
	switch {
	case established:
	case names.Status == apiextensionsv1.ConditionTrue:
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionTrue,
			Reason: "InitialNamesAccepted", Message: "the initial names have been accepted",
		})
	default:
		apihelpers.SetCRDCondition(crd, apiextensionsv1.CustomResourceDefinitionCondition{
			Type: apiextensionsv1.Established, Status: apiextensionsv1.ConditionFalse,
			Reason: "NotAccepted", Message: "not all names are accepted",
		})
	}
	return !equality.Semantic.DeepEqual(before, &crd.Status)
}

// namesOf accepts the names of a CRD that no other of its group has, and tells whether those
// are all.
func namesOf(crd *apiextensionsv1.CustomResourceDefinition, all definitions) apiextensionsv1.CustomResourceDefinitionCondition {
	resources, kinds := sets.New[string](), sets.New[string]()
	for _, d := range all {
		if n := d.Status.AcceptedNames; d.Spec.Group == crd.Spec.Group && d.Name != crd.Name {
			resources.Insert(append(n.ShortNames, n.Plural, n.Singular)...)
			kinds.Insert(n.Kind, n.ListKind)
		}
	}
	condition := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.NamesAccepted, Status: apiextensionsv1.ConditionTrue,
		Reason: "NoConflicts", Message: "no conflicts found",
	}
	conflict := func(reason, name string) {
		condition.Status, condition.Reason = apiextensionsv1.ConditionFalse, reason
		condition.Message = fmt.Sprintf("%q is already in use", name)
	}
	one := func(reason, wanted string, accepted *string, taken sets.Set[string]) {
		if wanted != *accepted && taken.Has(wanted) {
			conflict(reason, wanted)
			return
		}
		*accepted = wanted
	}
	wanted, accepted := crd.Spec.Names, &crd.Status.AcceptedNames
	one("PluralConflict", wanted.Plural, &accepted.Plural, resources)
	one("SingularConflict", wanted.Singular, &accepted.Singular, resources)
	if i := slices.IndexFunc(wanted.ShortNames, resources.Has); i >= 0 {
		conflict("ShortNamesConflict", wanted.ShortNames[i])
	} else {
		accepted.ShortNames = wanted.ShortNames
	}
	one("KindConflict", wanted.Kind, &accepted.Kind, kinds)
	one("ListKindConflict", wanted.ListKind, &accepted.ListKind, kinds)
	accepted.Categories = wanted.Categories
	return condition
}

// refusal says why a CRD is not served.
func (d *definition) refusal() string {
	if c := apihelpers.FindCRDCondition(d.CustomResourceDefinition, apiextensionsv1.NamesAccepted); c != nil {
		return c.Message
	}
	return "it was not established"
}

// finish deletes the objects of a CRD and, when there are none left, lets go of it.
func (s *Server) finish(ctx context.Context, db *store.DB, client definitionclient.CustomResourceDefinitionInterface,
	crd *apiextensionsv1.CustomResourceDefinition,
) error {
	if !apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return nil
	}
	version, err := apihelpers.GetCRDStorageVersion(crd)
	if err != nil {
		return err
	}
	left, err := s.deleteAll(ctx, db, schema.GroupVersionResource{Group: crd.Spec.Group, Version: version, Resource: crd.Spec.Names.Plural})
	if err != nil {
		return err
	}
	state := apiextensionsv1.CustomResourceDefinitionCondition{
		Type: apiextensionsv1.Terminating, Status: apiextensionsv1.ConditionTrue,
		Reason: "InstanceDeletionInProgress", Message: "CustomResource deletion is in progress",
	}
	if left == 0 {
		state.Status, state.Reason, state.Message = apiextensionsv1.ConditionFalse, "InstanceDeletionCompleted", "removed all instances"
		apihelpers.CRDRemoveFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer)
	}
	if left > 0 && apihelpers.IsCRDConditionEquivalent(&state, apihelpers.FindCRDCondition(crd, state.Type)) {
		return nil
	}
	apihelpers.SetCRDCondition(crd, state)
	_, err = client.UpdateStatus(ctx, crd, metav1.UpdateOptions{})
	return err
}

// deleteAll deletes all objects of a resource and returns how many remain: those that wait
// for a finalizer.
func (s *Server) deleteAll(ctx context.Context, db *store.DB, resource schema.GroupVersionResource) (int, error) {
	all, err := dynamic.NewForConfig(inner{s, db}.config())
	if err != nil {
		return 0, err
	}
	list, err := all.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	for _, o := range list.Items {
		if o.GetDeletionTimestamp() != nil {
			continue
		}
		err := all.Resource(resource).Namespace(o.GetNamespace()).Delete(ctx, o.GetName(), metav1.DeleteOptions{})
		if err != nil && !apierrors.IsNotFound(err) {
			return 0, err
		}
	}
	list, err = all.Resource(resource).List(ctx, metav1.ListOptions{})
	if err != nil {
		return 0, err
	}
	return len(list.Items), nil
}
