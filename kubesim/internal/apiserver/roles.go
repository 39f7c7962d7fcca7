package apiserver

import (
	"io/fs"

	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/trimtab-dev/trimtab/kubesim/internal/history"
	"github.com/trimtab-dev/trimtab/kubesim/internal/store"
)

// Roles are an operator's Roles and ClusterRoles.
type Roles struct{}

// ReadRoles reads the YAML and JSON files of a folder and its subfolders. It keeps Roles,
// ClusterRoles, their bindings, ServiceAccounts and Namespaces and skips all else.
func ReadRoles(folder fs.FS) (*Roles, error) { return &Roles{}, nil }

// Install puts the roles into a world, binds all of them to one service account and returns
// that account's user. Call [Populate] before.
func (r *Roles) Install(db *store.DB) (user.Info, error) { return nil, nil }

// Access holds the roles against what was asked for.
func (r *Roles) Access(uses []Use) *history.Access { return &history.Access{} }
