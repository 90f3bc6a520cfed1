import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { test } from 'tap'

const root = resolve(import.meta.dirname, '..', '..')

await test('samples list the wheel of their networks as the example names it', (t) => {
  const networks = resolve(root, 'examples', 'read-text', 'networks.txt')
  const args = [resolve(root, 'images', 'list-samples.mjs'), '1.2.3', networks]
  const { metadata, components } = JSON.parse(execFileSync(process.execPath, args))
  t.equal(metadata.component.version, '1.2.3')
  t.equal(components.length, 1)
  const [{ purl, hashes, licenses }] = components
  const [{ alg, content }] = hashes
  t.equal(alg, 'SHA-256')
  const requirement = `${purl.replace('pkg:pypi/', '').replace('@', '==')} --hash=sha256:${content}`
  t.ok(readFileSync(networks, 'utf8').split('\n').includes(requirement), requirement)
  t.same(licenses, [{ license: { id: 'Apache-2.0' } }])
  t.end()
})
