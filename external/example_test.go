package external_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external"
)

// Bucket is a kind whose objects each represent one bucket of an object store. controller-gen
// writes its CRD and the methods that copy it.
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   BucketSpec   `json:"spec"`
	Status BucketStatus `json:"status,omitzero"`
}

// BucketSpec is what a user asks for.
type BucketSpec struct {
	Quota   int    `json:"quota"`
	Account string `json:"account,omitempty"`
}

// BucketStatus has the fields that every external resource has; add your own.
type BucketStatus struct {
	api.ExternalStatus `json:",inline"`
}

// TrimtabStatus and TrimtabExternal let trimtab write the status.
func (b *Bucket) TrimtabStatus() *api.Status           { return &b.Status.Status }
func (b *Bucket) TrimtabExternal() *api.ExternalStatus { return &b.Status.ExternalStatus }

// DeepCopyObject implements runtime.Object.
func (b *Bucket) DeepCopyObject() runtime.Object {
	out := *b
	metadata := &b.ObjectMeta
	metadata.DeepCopyInto(&out.ObjectMeta)
	out.Status.ExternalStatus = *b.TrimtabExternal().DeepCopy()
	return &out
}

// store is the client of the external API: buckets by name.
type store map[string]bucket

// bucket is a bucket as the API returns it.
type bucket struct {
	quota int
	tags  map[string]string
}

// buckets is the whole driver.
type buckets struct{}

func (buckets) Observe(_ context.Context, r external.ObserveRequest[*Bucket, store]) (external.Observation[bucket], error) {
	b, found := r.Client[r.ID]
	if !found {
		return external.Missing[bucket](), nil
	}
	return external.Available(b, external.MarkOf(b.tags)), nil
}

func (buckets) Compare(r external.CompareRequest[*Bucket, bucket]) external.Changes {
	return external.Diff(external.Field("spec.quota", r.Object.Spec.Quota, r.Have.quota))
}

func (buckets) Create(_ context.Context, r external.CreateRequest[*Bucket, store]) (external.CreateResponse[bucket], error) {
	r.Client[r.ID] = bucket{quota: r.Object.Spec.Quota, tags: r.Mark.On(nil)}
	return external.CreateResponse[bucket]{}, nil
}

func (buckets) Update(_ context.Context, r external.UpdateRequest[*Bucket, store, bucket]) (external.UpdateResponse[bucket], error) {
	r.Client[r.ID] = bucket{quota: r.Object.Spec.Quota, tags: r.Have.tags}
	return external.UpdateResponse[bucket]{}, nil
}

func (buckets) Delete(_ context.Context, r external.DeleteRequest[*Bucket, store]) (external.DeleteResponse, error) {
	delete(r.Client, r.ID)
	return external.DeleteResponse{}, nil
}

// The compiler checks that buckets has the methods that it is meant to have.
var (
	_ external.Driver[*Bucket, store, bucket]  = buckets{}
	_ external.Updater[*Bucket, store, bucket] = buckets{}
)

// A driver and the client of its API make a controller, which package operator or any manager
// runs. The methods of a driver can be tested without either.
func Example() {
	api := store{}
	controller := external.New(buckets{}, external.Options[*Bucket, store]{
		Connect: func(context.Context) (store, error) { return api, nil },
	})
	fmt.Printf("%T\n", controller)

	ctx, driver := context.Background(), buckets{}
	photos := &Bucket{Spec: BucketSpec{Quota: 3}}
	_, _ = driver.Create(ctx, external.CreateRequest[*Bucket, store]{Client: api, Object: photos, ID: "photos"})

	photos.Spec.Quota = 5
	seen, _ := driver.Observe(ctx, external.ObserveRequest[*Bucket, store]{Client: api, Object: photos, ID: "photos"})
	fmt.Println(seen.Phase, driver.Compare(external.CompareRequest[*Bucket, bucket]{Object: photos, Have: seen.Have}))
	// Output:
	// *loop.Controller[*github.com/trimtab-dev/trimtab/external_test.Bucket]
	// Available spec.quota 3 → 5
}
