package scenarios

import (
	"fmt"
	"io/fs"
	"testing/fstest"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/yaml"

	"github.com/trimtab-dev/trimtab/api"
	"github.com/trimtab-dev/trimtab/loop"
	"github.com/trimtab-dev/trimtab/operator"
)

// record is the annotation with the engine's own record. It holds moments, and tells
// processes apart.
const record = "metadata.annotations.trimtab.dev/external"

// incarnation counts how often a thing was made. A process that is killed between a loss and
// its marker leaves the next one unable to tell a lost thing from one that was never made.
const incarnation = "status.external.incarnation"

// managerOptions are those of package operator that decide what an operator sees.
func managerOptions() manager.Options {
	return manager.Options{Cache: cache.Options{DefaultTransform: cache.TransformStripManagedFields()}}
}

// setUp adds controllers to a manager.
func setUp(mgr ctrl.Manager, controllers []operator.Controller) error {
	for _, c := range controllers {
		c.Govern(loop.Terms{Installation: "operator", Adoption: loop.Limit{"": api.AdoptionAlways}})
		if err := c.SetupWithManager(mgr); err != nil {
			return err
		}
	}
	return nil
}

// justified are rights that no story is long enough to need: to record the same event over
// and over, and to look past a cache that is seconds behind.
// The right to write records is asked for by a policy alone.
const justified = "patch events.events.k8s.io, get probes.probe.trimtab.dev, update records.trimtab.dev"

// roles are the cluster roles among an operator's manifests. It panics if there are no
// manifests, which is a mistake in this package.
func roles(o operator.Options) fs.FS {
	objects, err := operator.Manifests(o, operator.ManifestOptions{})
	if err != nil {
		panic(fmt.Sprintf("the manifests of %s: %v", o.Name, err))
	}
	files := fstest.MapFS{}
	for _, obj := range objects {
		role, ok := obj.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		metav1.SetMetaDataAnnotation(&role.ObjectMeta, "kubesim.trimtab.dev/justified", justified)
		b, err := yaml.Marshal(role)
		if err != nil {
			panic(fmt.Sprintf("role %s: %v", role.Name, err))
		}
		files[role.Name+".yaml"] = &fstest.MapFile{Data: b}
	}
	return files
}
