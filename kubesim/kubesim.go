package kubesim

import (
	"io/fs"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/client-go/rest"

	"github.com/trimtab-dev/trimtab/kubesim/internal/apiserver"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Options say what a cluster has from the start. The zero value is a cluster with the
// built-in kinds alone.
type Options struct {
	// CRDs holds CustomResourceDefinitions as YAML or JSON files in any of its folders, such
	// as os.DirFS("config/crd/bases"). Files with other kinds are skipped. Nil means none.
	CRDs fs.FS
	// Definitions are CustomResourceDefinitions beside those in files. They need not be
	// defaulted or established.
	Definitions []*apiextensionsv1.CustomResourceDefinition
}

// Cluster is a simulated cluster: an API server with its objects. It is safe for concurrent
// use.
type Cluster struct {
	server *apiserver.Server
	db     *store.DB
}

// New starts a cluster, which ends with the test. What is wrong with the options fails it.
func New(t testing.TB, o Options) *Cluster {
	t.Helper()
	crds, err := apiserver.ReadCRDs(o.CRDs)
	if err != nil {
		t.Fatal(err)
	}
	server, err := apiserver.New(append(crds, o.Definitions...))
	if err != nil {
		t.Fatal(err)
	}
	db := store.New()
	if err := apiserver.Populate(db); err != nil {
		t.Fatal(err)
	}
	server.Furnish(db)
	return &Cluster{server: server, db: db}
}

// Config returns how an administrator reaches the cluster. Each call returns a new one, which
// the caller may change; only its Transport must stay.
func (c *Cluster) Config() *rest.Config { return c.config(nil) }

// As returns how a user reaches the cluster: what the cluster's Roles allow it to do and no
// more. Every user is in the group system:authenticated. The name of a service account is
// system:serviceaccount:NAMESPACE:NAME.
func (c *Cluster) As(name string, groups ...string) *rest.Config {
	return c.config(&user.DefaultInfo{Name: name, Groups: append(groups, user.AllAuthenticated)})
}

func (c *Cluster) config(who user.Info) *rest.Config {
	return &rest.Config{
		Host: "http://kubesim",
		QPS:  -1,
		Transport: &apiserver.Transport{
			Server: c.server,
			Client: apiserver.Client{DB: c.db, User: who},
		},
	}
}
