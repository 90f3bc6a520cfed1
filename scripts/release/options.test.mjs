import { test } from 'tap'
import { parseOptions } from './options.mjs'

const registryOf = (registry) => parseOptions(['pack', `--registry=${registry}`], '/').registry
const sourceOf = (source) => parseOptions(['pack', `--source=${source}`], '/').source

await test('a registry is one as references have it', async (t) => {
  for (const registry of ['ghcr.io/some-owner', 'localhost:5000', '10.0.0.1:5000/a_b/c__d/e.f']) {
    t.equal(registryOf(registry), registry)
  }
  t.equal(registryOf('ghcr.io/Some-Owner'), 'ghcr.io/some-owner')
  t.equal(parseOptions(['pack'], '/').registry, 'ghcr.io/OWNER')
  for (const registry of [
    'a/../b',
    'a/./b',
    'a//b',
    'a/',
    '/a',
    '-a',
    'a/b-',
    'a:b',
    'https://a',
    '',
  ]) {
    t.throws(() => registryOf(registry), { message: /^--registry .*want HOST\/PATH/ }, registry)
  }
})

await test('a source is the address of a repository', async (t) => {
  for (const source of ['https://github.com/Some-Owner/tutti.js', 'https://git.example:8443/a/b']) {
    t.equal(sourceOf(source), source)
  }
  for (const source of ['https://a/../b', 'http://a/b', 'a/b', 'https://a', 'https://a/b/', '']) {
    t.throws(() => sourceOf(source), { message: /^--source .*want https:/ }, source)
  }
})
