package object

import (
	"context"
	"iter"
	"strings"
)

// Prefix gives the part of s whose keys begin with prefix and a slash, as a store of its own. An empty prefix gives s.
func Prefix(s Store, prefix string) Store {
	prefix = strings.Trim(prefix, "/")
	if prefix == "" {
		return s
	}
	sub := subspace{inner: s, prefix: prefix + "/"}
	if local, ok := s.(pather); ok {
		return localSubspace{subspace: sub, local: local}
	}
	return sub
}

// subspace checks keys itself: joined to the prefix, a bad one such as "" could name something else.
type subspace struct {
	inner  Store
	prefix string // ends in a slash
}

func (s subspace) Read(ctx context.Context, key string, offset, length int64) ([]byte, error) {
	if err := CheckKey(key); err != nil {
		return nil, err
	}
	return s.inner.Read(ctx, s.prefix+key, offset, length)
}

func (s subspace) Put(ctx context.Context, key string, body []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return s.inner.Put(ctx, s.prefix+key, body)
}

func (s subspace) PutIfAbsent(ctx context.Context, key string, body []byte) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return s.inner.PutIfAbsent(ctx, s.prefix+key, body)
}

func (s subspace) List(ctx context.Context, prefix, after string) iter.Seq2[Info, error] {
	return func(yield func(Info, error) bool) {
		if err := CheckPrefix(prefix); err != nil {
			yield(Info{}, err)
			return
		}
		// An empty after stands for the beginning, and no key of ours is below the prefix itself.
		for info, err := range s.inner.List(ctx, s.prefix+prefix, s.prefix+after) {
			info.Key = strings.TrimPrefix(info.Key, s.prefix)
			if !yield(info, err) {
				return
			}
		}
	}
}

func (s subspace) Delete(ctx context.Context, key string) error {
	if err := CheckKey(key); err != nil {
		return err
	}
	return s.inner.Delete(ctx, s.prefix+key)
}

// localSubspace is a sub-space of a store that keeps its objects as local files.
type localSubspace struct {
	subspace
	local pather
}

// LocalPath gives the inner store's path.
func (s localSubspace) LocalPath(key string) (string, bool) {
	if CheckKey(key) != nil {
		return "", false
	}
	return s.local.LocalPath(s.prefix + key)
}
