import { existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { claimFolder, isFolderOfNode, removeFolder } from './state-folder.mjs'

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

await test('the folder of a node is removed with all that is in it', (t) => {
  const root = t.testdir({ node: {} })
  const folder = join(root, 'node')
  claimFolder(folder)
  mkdirSync(join(folder, 'root', 'var'), { recursive: true })
  removeFolder(folder)
  t.equal(existsSync(folder), false)
  t.end()
})

await test('a link to a folder elsewhere stays, and can be claimed again', (t) => {
  const root = t.testdir({ elsewhere: {}, link: t.fixture('symlink', 'elsewhere') })
  const folder = join(root, 'link')
  claimFolder(folder)
  mkdirSync(join(folder, 'root'))
  removeFolder(folder)
  t.same(readdirSync(join(root, 'elsewhere')), [])
  claimFolder(folder)
  t.end()
})

await test('a node whose process is noted has its folder', (t) => {
  const folder = t.testdir()
  writeFileSync(join(folder, 'process.json'), '{}')
  t.equal(isFolderOfNode(folder), true)
  t.end()
})
