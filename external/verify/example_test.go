package verify_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/external/verify"
)

// Bucket is a kind whose objects each represent one bucket of an object store. controller-gen writes its CRD and the methods
// that copy it.
type Bucket struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`

	Spec   BucketSpec   `json:"spec"`
	Status BucketStatus `json:"status,omitzero"`
}

// BucketSpec is what a user asks for.
type BucketSpec struct {
	Quota int `json:"quota"`
}

// BucketStatus has the fields that every external resource has.
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

// buckets is the whole ResourceManager: the quotas in the store, by name.
type buckets map[string]int

func (b buckets) Verify(_ context.Context, r verify.ResourceSpec[*Bucket]) (verify.VerifyResponse, error) {
	quota, found := b[r.ID]
	switch {
	case !found:
		return verify.VerifyResponse{Result: verify.VerifyResultMissing}, nil
	case quota != r.Instance.Spec.Quota:
		return verify.VerifyResponse{Result: verify.VerifyResultUpdateRequired}, nil
	}
	return verify.VerifyResponse{Result: verify.VerifyResultReady}, nil
}

func (b buckets) Create(_ context.Context, r verify.ResourceSpec[*Bucket]) (verify.ApplyResponse, error) {
	b[r.ID] = r.Instance.Spec.Quota
	return verify.ApplyResponse{Result: verify.ApplyResultSucceeded}, nil
}

func (b buckets) Update(ctx context.Context, r verify.ResourceSpec[*Bucket]) (verify.ApplyResponse, error) {
	return b.Create(ctx, r)
}

func (b buckets) Delete(_ context.Context, r verify.ResourceSpec[*Bucket]) (verify.DeleteResult, error) {
	delete(b, r.ID)
	return verify.DeleteResultSucceeded, nil
}

// A ResourceManager makes a controller, which package operator or any manager runs.
func Example() {
	controller, err := verify.New(buckets{}, verify.NoDependencies[*Bucket]{}, verify.Options[*Bucket]{})
	fmt.Printf("%T %v\n", controller, err)

	_, err = verify.New(buckets{}, nil, verify.Options[*Bucket]{})
	fmt.Println(err)
	// Output:
	// *loop.Controller[*github.com/trimtab-dev/trimtab/external/verify_test.Bucket] <nil>
	// verify: New needs a DefinitionManager; pass verify.NoDependencies[*verify_test.Bucket]{} if there are no dependencies
}
