import { mkdirSync, readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { claimFolder, emptyFolder, isFolderOfNode } from './state-folder.mjs'

await test('a folder that is not there, or empty, becomes one of a node', (t) => {
  const root = t.testdir({ empty: {} })
  for (const folder of [join(root, 'new', 'one'), join(root, 'empty')]) {
    t.equal(isFolderOfNode(folder), false)
    claimFolder(folder)
    t.equal(isFolderOfNode(folder), true)
    t.equal(statSync(folder).mode & 0o777, 0o711)
  }
  t.end()
})

await test('a folder with anything else is left alone', (t) => {
  const folder = t.testdir({ thesis: 'x' })
  t.throws(() => claimFolder(folder), { message: /has thesis, want one that is empty/ })
  t.equal(isFolderOfNode(folder), false)
  t.end()
})

await test('what can be no folder is refused', (t) => {
  const file = join(t.testdir({ file: 'x' }), 'file')
  for (const folder of [file, join(file, 'below')]) {
    t.throws(() => claimFolder(folder), { message: /^The folder of a node cannot be made: E/ })
  }
  t.end()
})

await test('the folder of a node is emptied, and can be claimed again', (t) => {
  const folder = t.testdir()
  claimFolder(folder)
  mkdirSync(join(folder, 'root', 'var'), { recursive: true })
  emptyFolder(folder)
  t.same(readdirSync(folder), [])
  claimFolder(folder)
  t.end()
})
