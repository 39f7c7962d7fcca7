package apiserver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/registry/generic"
	genericregistry "k8s.io/apiserver/pkg/registry/generic/registry"
	genericapiserver "k8s.io/apiserver/pkg/server"
	serverstorage "k8s.io/apiserver/pkg/server/storage"
	"k8s.io/apiserver/pkg/storage/names"
	jobstore "k8s.io/kubernetes/pkg/registry/batch/job/storage"
	batchrest "k8s.io/kubernetes/pkg/registry/batch/rest"

	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// generatedNames names objects with a generateName before the registry would do so at random:
// equal runs make equal names.
type generatedNames struct{ *admission.Handler }

func newGeneratedNames() generatedNames {
	return generatedNames{admission.NewHandler(admission.Create)}
}

var _ admission.MutationInterface = generatedNames{}

// Admit names an object.
func (generatedNames) Admit(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	m, err := meta.Accessor(a.GetObject())
	if err != nil || a.GetSubresource() != "" || m.GetName() != "" || m.GetGenerateName() == "" {
		return nil //nolint:nilerr // what has no metadata needs no name
	}
	base := m.GetGenerateName()
	m.SetName(base[:min(len(base), names.MaxGeneratedNameLength)] + suffix(store.From(ctx).Serial()))
	return nil
}

// suffix returns five characters that look like those of a real server: two serials below 14
// million never have the same.
func suffix(serial int64) string {
	const alphabet, all = "bcdfghjklmnpqrstvwxz2456789", 27 * 27 * 27 * 27 * 27
	n := (serial * 7368787) % all // has no factor in common with all
	var s [5]byte
	for i := range s {
		s[i] = alphabet[n%27]
		n /= 27
	}
	return string(s[:])
}

// batchProvider makes the batch group. A job copies its UID into its selector before it is
// stored, so it must have its final one earlier than others.
type batchProvider struct{ batchrest.RESTStorageProvider }

// NewRESTStorage makes the real registries.
func (p batchProvider) NewRESTStorage(c serverstorage.APIResourceConfigSource, o generic.RESTOptionsGetter) (genericapiserver.APIGroupInfo, error) {
	group, err := p.RESTStorageProvider.NewRESTStorage(c, o)
	if err != nil {
		return group, err
	}
	jobs := group.VersionedResourcesStorageMap["v1"]["jobs"].(*jobstore.REST)
	jobs.BeginCreate = func(ctx context.Context, obj runtime.Object, _ *metav1.CreateOptions) (genericregistry.FinishFunc, error) {
		m, err := meta.Accessor(obj)
		if err != nil {
			return nil, err
		}
		m.SetUID(types.UID(store.UID("/jobs/"+m.GetNamespace()+"/"+m.GetName(), store.From(ctx).Serial())))
		return func(context.Context, bool) {}, nil
	}
	return group, nil
}
