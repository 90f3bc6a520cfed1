import { join } from 'node:path'
import { test } from 'tap'
import { revisionOf, sourceOf, toSourceUrl } from './git.mjs'

await test('the source is an address of the web, without credentials', async (t) => {
  const cases = [
    ['https://github.com/a/b.git', 'https://github.com/a/b'],
    ['https://user:secret@git.example/a/b', 'https://git.example/a/b'],
    ['git@github.com:a/b.git', 'https://github.com/a/b'],
    ['ssh://git@git.example/a/b.git', 'https://git.example/a/b'],
    ['/srv/git/b.git', ''],
    ['', ''],
  ]
  for (const [remote, url] of cases) t.equal(toSourceUrl(remote), url, remote)
})

await test('a folder that is no checkout has neither revision nor source', async (t) => {
  const folder = join(t.testdir(), 'nowhere')
  t.equal(revisionOf(folder), 'unknown')
  t.equal(sourceOf(folder), '')
  t.match(revisionOf(import.meta.dirname), /^[0-9a-f]{40}(-dirty)?$/)
})
