package object

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
)

// pather is a store that keeps its objects as local files: LocalPath gives the place of a key, whether or not something
// is there, or false where the key has none.
type pather interface {
	LocalPath(key string) (string, bool)
}

// Local gives the path of a local file with the object's bytes, its name ending as the key's does: the store's own file
// if it keeps one (never write to it), else a copy made in dir, which the caller removes. A copy is made as Download does.
func Local(ctx context.Context, s Store, key, dir string) (string, error) {
	if local, ok := s.(pather); ok {
		if name, ok := local.LocalPath(key); ok {
			if _, err := s.Read(ctx, key, 0, 0); err != nil { // is it there, and may we?
				return "", err
			}
			return name, nil
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("copy %q: %w", key, err)
	}
	file, err := os.CreateTemp(dir, "copy-*")
	if err != nil {
		return "", fmt.Errorf("copy %q: %w", key, err)
	}
	sum := sha256.Sum256([]byte(key))
	name := filepath.Join(dir, hex.EncodeToString(sum[:16])+path.Ext(key))
	_, err = Download(ctx, s, key, file)
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(file.Name(), name) // at once: another call may be reading the file of this name
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("copy %q: %w", key, err), os.Remove(file.Name()))
	}
	return name, nil
}
