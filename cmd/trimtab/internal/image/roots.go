package image

import (
	"bytes"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Bundles are where systems keep the certificates of the authorities that they trust, in the order in which they are tried.
func bundles() []string {
	return []string{
		"/etc/ssl/certs/ca-certificates.crt",                // Debian, Ubuntu, Arch, Alpine
		"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // Fedora, RHEL
		"/etc/ssl/ca-bundle.pem",                            // openSUSE
		"/etc/ssl/cert.pem",                                 // macOS, FreeBSD
	}
}

// Roots reads the certificates of authorities in a file. Without a name, it is that of this machine.
func Roots(file string) ([]byte, error) {
	files := bundles()
	if file != "" {
		files = []string{file}
	}
	for _, name := range files {
		content, err := os.ReadFile(name)
		switch {
		case errors.Is(err, fs.ErrNotExist) && file == "":
			continue
		case err != nil:
			return nil, err
		case !x509.NewCertPool().AppendCertsFromPEM(bytes.Clone(content)):
			return nil, fmt.Errorf("%s contains no certificate; name a file with PEM certificates with --ca-bundle", name)
		}
		return content, nil
	}
	return nil, errors.New("this machine has no file with the certificates of authorities; name one with --ca-bundle")
}
