package external_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
)

// Store is a kind whose objects each say how to reach one object store. Buckets name one.
type Store struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec StoreSpec `json:"spec"`
}

// StoreSpec has the URL of an object store, and refers to the Secret with its token.
type StoreSpec struct {
	URL   string                 `json:"url"`
	Token api.SecretKeyReference `json:"token"`
}

// DeepCopyObject implements runtime.Object.
func (s *Store) DeepCopyObject() runtime.Object {
	out := *s
	metadata := &s.ObjectMeta
	metadata.DeepCopyInto(&out.ObjectMeta)
	out.Spec.Token = *s.Spec.Token.DeepCopy()
	return &out
}

// Objects name another object that says where the API is, and in which Secret the credentials are.
func ExampleConfig() {
	// region: config
	config := external.Config[*Bucket, *Store, store]{
		Of: func(b *Bucket) (types.NamespacedName, error) {
			return types.NamespacedName{Name: b.Spec.Account}, nil // in the namespace of the Bucket
		},
		Credentials: func(s *Store) []api.Reference { return []api.Reference{&s.Spec.Token} },
		Connect: func(_ context.Context, s *Store) (external.ConnectResponse[store], error) {
			return external.ConnectResponse[store]{Client: login(s.Spec.URL, string(s.Spec.Token.Value())), Endpoint: s.Spec.URL}, nil
		},
	}
	controller := external.New(buckets{}, external.Options[*Bucket, store]{Connector: config.Connector()})
	// endregion: config
	fmt.Printf("%T\n", controller)
	// Output: *loop.Controller[*github.com/trimtab-dev/trimtab/external_test.Bucket]
}
