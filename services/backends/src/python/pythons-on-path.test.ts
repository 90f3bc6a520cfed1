import { chmod, mkdir, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import t from 'tap'
import { pythonsOnPath } from './pythons-on-path.ts'

await t.test('each interpreter of PATH comes once, those named python3 first', async (t) => {
  const root = t.testdir({ shims: {}, system: {}, venv: {}, data: { python3: 'text' } })
  const file = (...names: readonly string[]): string => join(root, ...names)
  for (const name of ['shims', 'system']) {
    await writeFile(file(name, 'python3'), `#!/bin/sh\n# ${name}\n`)
    await chmod(file(name, 'python3'), 0o755)
  }
  await writeFile(file('shims', 'python'), '#!/bin/sh\n')
  await chmod(file('shims', 'python'), 0o755)
  await symlink('python3', file('system', 'python'))
  await symlink('system', file('link'))
  await symlink(file('system', 'python3'), file('venv', 'python3'))
  await mkdir(file('folder', 'python3'), { recursive: true })
  const folders = ['shims', 'link', 'venv', 'data', 'folder', 'none', 'system']
  const path = ['', 'relative', ...folders.map((name) => file(name))].join(':')
  t.same(pythonsOnPath(path, file('system')), [
    file('shims', 'python3'),
    file('link', 'python3'),
    file('venv', 'python3'),
    file('shims', 'python'),
  ])
  t.same(pythonsOnPath('', file('system')), [file('system', 'python3')], 'the system has its own')
  t.same(pythonsOnPath('', file('none')), [])
})
