package testenv

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// startAssets runs the envtest binaries. envtest expects a call when the tests are over, which is not
// possible here, so each binary is guarded by a process that ends it.
func startAssets(assets string) (*rest.Config, error) {
	dir, err := os.MkdirTemp("", "trimtab-envtest-*")
	if err != nil {
		return nil, err
	}
	guarded, err := guard(dir, assets)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("prepare envtest: %w", err), os.RemoveAll(dir))
	}
	env := &envtest.Environment{}
	env.ControlPlane.Etcd = &envtest.Etcd{Path: guarded("etcd"), DataDir: filepath.Join(dir, "etcd-data")}
	api := env.ControlPlane.GetAPIServer()
	api.Path = guarded("kube-apiserver")
	api.CertDir = filepath.Join(dir, "certs")
	for _, d := range []string{env.ControlPlane.Etcd.DataDir, api.CertDir} {
		if err := os.Mkdir(d, 0o700); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	cfg, err := env.Start()
	if err != nil {
		err = fmt.Errorf("start envtest with the binaries in %s=%q: %w", EnvAssets, assets, err)
		return nil, errors.Join(err, env.Stop(), os.RemoveAll(dir))
	}
	return cfg, nil
}
