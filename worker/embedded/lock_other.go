//go:build !unix

package embedded

// lock does nothing where the system has no lock that ends with the process.
func lock(string) (unlock func() error, err error) {
	return func() error { return nil }, nil
}
