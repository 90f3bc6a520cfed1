import { spawnSync } from 'node:child_process'
import { existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { Node } from './node.mjs'
import { saveProcess } from './process-file.mjs'

const skip = process.platform !== 'linux' && 'there is no /proc'

await test('a node is up while all of it runs', { skip }, (t) => {
  const folder = t.testdir()
  const path = (name) => join(folder, name)
  const node = new Node(folder)
  t.match(node.whyNotUp(), 'no node has been started')
  saveProcess(path('process.json'), process.pid)
  t.match(node.whyNotUp(), 'has not started to its end')
  writeFileSync(path('up'), '')
  t.equal(node.whyNotUp(), undefined)
  t.ok(node.isUp)
  writeFileSync(path('ended'), 'etcd\nkubelet\n')
  t.match(node.whyNotUp(), 'etcd has ended')
  t.notOk(node.isUp)
  t.end()
})

await test('a node whose run was killed is not up', { skip }, (t) => {
  const folder = t.testdir()
  const node = new Node(folder)
  saveProcess(join(folder, 'process.json'), process.pid)
  writeFileSync(join(folder, 'up'), '')
  saveProcess(join(folder, 'run.json'), process.pid)
  t.ok(node.isUp)
  const { pid } = spawnSync('true')
  saveProcess(join(folder, 'run.json'), pid)
  t.match(node.whyNotUp(), 'the run that has started the node was killed')
  rmSync(join(folder, 'run.json'))
  t.ok(node.isUp)
  t.end()
})

await test('where there is no node its end touches nothing', async (t) => {
  const folder = t.testdir({ thesis: 'x' })
  await new Node(folder).down()
  t.ok(existsSync(join(folder, 'thesis')))
})
