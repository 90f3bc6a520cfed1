import { existsSync, readdirSync, readFileSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { assemble, closureOf, isPackageFileKept, isRoomFileKept } from './assemble.mjs'

const manifest = (name, more = {}) => JSON.stringify({ name, version: '1.0.0', ...more })

/** A checkout of two rooms; `step` needs `errors`, a package of which there are two versions, and nothing of a third. */
function checkout(t) {
  const dist = { 'main.js': '', 'main.test.js': '', 'main.d.ts': '', testing: { 'fake.js': '' } }
  const root = t.testdir({
    LICENSE: '',
    services: {
      step: {
        'package.json': manifest('@tutti/step', {
          dependencies: { '@tutti/errors': '1.0.0', left: '1.0.0' },
          optionalDependencies: { 'for-windows': '1.0.0' },
        }),
        src: { 'main.ts': '' },
        dist,
        python: { 'worker.py': '', tests: { 'test_worker.py': '' } },
      },
      errors: { 'package.json': manifest('@tutti/errors'), dist: { 'index.js': '' } },
      other: { 'package.json': manifest('@tutti/other', { dependencies: { unused: '1.0.0' } }) },
    },
    node_modules: {
      '@tutti': {},
      left: {
        'package.json': manifest('left', {
          dependencies: { right: '2.0.0', '@types/node': '1.0.0' },
          peerDependencies: { peer: '*', absent: '*' },
          peerDependenciesMeta: { absent: { optional: true } },
        }),
        'index.js': '',
        'README.md': '',
        node_modules: { right: { 'package.json': manifest('right'), 'two.js': '' } },
      },
      right: { 'package.json': manifest('right'), 'one.js': '' },
      peer: { 'package.json': manifest('peer'), 'LICENSE.md': '' },
      unused: { 'package.json': manifest('unused') },
      '@types': { node: { 'package.json': manifest('@types/node') } },
    },
  })
  for (const room of ['step', 'errors', 'other']) {
    symlinkSync(`../../services/${room}`, join(root, 'node_modules', '@tutti', room))
  }
  return root
}

await test('a program gets its own packages, as Node finds them, and no others', async (t) => {
  t.same(closureOf(checkout(t), 'services/step'), {
    rooms: ['services/errors', 'services/step'],
    packages: ['node_modules/left', 'node_modules/left/node_modules/right', 'node_modules/peer'],
  })
})

await test('a package that is needed and not installed is an error', async (t) => {
  const root = t.testdir({
    room: { 'package.json': manifest('r', { dependencies: { gone: '1' } }) },
  })
  t.throws(() => closureOf(root, 'room'), { message: /room needs gone, which is not installed/ })
})

await test('what is copied runs, and holds no tests, types or texts', async (t) => {
  const out = join(t.testdir(), 'out')
  assemble(checkout(t), 'services/step', out)
  t.same(readdirSync(join(out, 'services/step')).toSorted(), ['dist', 'package.json', 'python'])
  t.same(readdirSync(join(out, 'services/step/dist')), ['main.js'])
  t.same(readdirSync(join(out, 'services/step/python')), ['worker.py'])
  t.same(readdirSync(join(out, 'node_modules')).toSorted(), ['@tutti', 'left', 'peer'])
  t.same(readdirSync(join(out, 'node_modules/peer')).toSorted(), ['LICENSE.md', 'package.json'])
  t.ok(existsSync(join(out, 'node_modules/left/node_modules/right/two.js')))
  t.notOk(existsSync(join(out, 'node_modules/left/README.md')))
  t.match(
    readFileSync(join(out, 'node_modules/@tutti/errors/package.json'), 'utf8'),
    '@tutti/errors',
  )
})

await test('binaries of other platforms stay behind', async (t) => {
  const linux = { platform: 'linux', arch: 'x64' }
  const cases = [
    ['onnxruntime-node', 'bin', true],
    ['onnxruntime-node', 'bin/napi-v6/linux', true],
    ['onnxruntime-node', 'bin/napi-v6/linux/x64/libonnxruntime.so.1', true],
    ['onnxruntime-node', 'bin/napi-v6/linux/arm64', false],
    ['onnxruntime-node', 'bin/napi-v6/win32', false],
    ['onnxruntime-node', 'script', false],
    ['koffi', 'src/koffi/index.cjs', true],
    ['koffi', 'src/koffi/ffi.cc', false],
    ['koffi', 'vendor', false],
    ['@koromix/koffi-linux-x64', 'linux_x64/koffi.node', true],
    ['@koromix/koffi-linux-x64', 'musl_x64', false],
    ['bare-fs', 'prebuilds', true],
    ['bare-fs', 'prebuilds/linux-x64', true],
    ['bare-fs', 'prebuilds/android-arm64', false],
    ['any', 'docs', false],
    ['any', 'lib/docs/index.js', true],
    ['any', 'node_modules', false],
    ['any', 'index.d.cts', false],
    ['any', 'dist/a.test.js', false],
    ['any', 'NOTICE.md', true],
  ]
  for (const [name, path, isKept] of cases) {
    t.equal(isPackageFileKept(name, path, linux), isKept, `${name} ${path}`)
  }
  t.ok(
    isPackageFileKept('onnxruntime-node', 'bin/napi-v6/linux/arm64', { ...linux, arch: 'arm64' }),
  )
})

await test('of a room only what runs is kept', async (t) => {
  for (const path of ['dist/a.js', 'proto/a.proto', 'python/tutti_worker/__main__.py']) {
    t.ok(isRoomFileKept(path), path)
  }
  for (const path of [
    'src',
    'README.md',
    'measure',
    'dist/a.soak.js',
    'dist/.tsbuildinfo',
    'dist/testing',
  ]) {
    t.notOk(isRoomFileKept(path), path)
  }
})
