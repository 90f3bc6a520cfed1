import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { inputFiles, inputsDigest } from './inputs.mjs'

const root = resolve(import.meta.dirname, '..', '..')

const CHECKOUT = {
  '.gitignore': 'dist\n',
  'package.json': '{}',
  'README.md': 'not shown',
  images: {
    Dockerfile: 'FROM x',
    'Dockerfile.dockerignore': '*\n!package.json\n!services\n!e2e/package.json\n**/dist\n',
  },
  services: {
    a: {
      dist: { 'a.js': '' },
      src: { 'a.ts': 'a', 'a.test.ts': 'not kept', dist: { 'b.js': '' } },
      'README.md': 'not kept',
    },
  },
  e2e: { 'package.json': '{}', src: { 'x.ts': '' } },
}

function checkout(t) {
  const folder = t.testdir(CHECKOUT)
  execFileSync('git', ['init', '--quiet'], { cwd: folder })
  return folder
}

await test('images are built from what the Dockerfile is shown, without tests', async (t) => {
  const folder = checkout(t)
  const files = [
    'e2e/package.json',
    'images/Dockerfile',
    'images/Dockerfile.dockerignore',
    'package.json',
    'services/a/src/a.ts',
  ]
  t.same(inputFiles(folder), files)
  execFileSync('git', ['add', '.'], { cwd: folder })
  rmSync(join(folder, 'package.json'))
  t.same(
    inputFiles(folder),
    files.filter((path) => path !== 'package.json'),
  )
})

await test('the digest changes with these files, and with no other', async (t) => {
  const folder = checkout(t)
  const before = inputsDigest(folder)
  t.match(before, /^sha256:[0-9a-f]{64}$/)
  for (const path of ['services/a/src/a.test.ts', 'services/a/dist/a.js', 'e2e/src/x.ts']) {
    writeFileSync(join(folder, path), 'changed')
    t.equal(inputsDigest(folder), before, path)
  }
  for (const path of ['images/Dockerfile', 'services/a/src/a.ts', 'services/a/src/new.ts']) {
    const last = inputsDigest(folder)
    writeFileSync(join(folder, path), 'changed')
    t.not(inputsDigest(folder), last, path)
  }
})

await test('outside of a checkout images are built each time', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'tutti-inputs-'))
  t.teardown(() => rmSync(folder, { recursive: true }))
  cpSync(t.testdir(CHECKOUT), folder, { recursive: true })
  t.not(inputsDigest(folder), inputsDigest(folder))
})

await test('of this checkout: sources and manifests, nothing that is built', async (t) => {
  const files = inputFiles(root)
  for (const wanted of [
    'model_repository/pre_gfpgan/config.pbtxt',
    'examples/classifier/models/shape_classifier/labels.txt',
    'package-lock.json',
    'operator/src/main.ts',
    'bench/package.json',
  ]) {
    t.ok(files.includes(wanted), wanted)
  }
  t.same(
    files.filter((path) => path.startsWith('images/')),
    [
      'images/Dockerfile',
      'images/Dockerfile.dockerignore',
      'images/assemble.sh',
      ...['operator', 'router', 'step'].map((name) => `images/bin/tutti-${name}`),
      'images/check.mjs',
      'images/install-cuda.sh',
      'images/list-samples.mjs',
    ],
  )
  t.notOk(
    files.some((path) =>
      /(^|\/)(dist|node_modules)\/|^charts\/|^e2e\/src|^scripts\/(?!bundle-(console|programs)\.)|^(model_repository|examples)\/\./.test(
        path,
      ),
    ),
  )
})
