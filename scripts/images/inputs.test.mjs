import { writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { test } from 'tap'
import { inputFiles, inputsDigest } from './inputs.mjs'

const root = resolve(import.meta.dirname, '..', '..')

const CHECKOUT = {
  'package.json': '{}',
  'README.md': 'not shown',
  '.git': { HEAD: 'x' },
  images: {
    Dockerfile: 'FROM x',
    'Dockerfile.dockerignore':
      '*\n!package.json\n!services\n!e2e\ne2e/*\n!e2e/package.json\n**/dist\n',
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

await test('images are built from what the Dockerfile is shown, tests aside', async (t) => {
  t.same(inputFiles(t.testdir(CHECKOUT)), [
    'e2e/package.json',
    'images/Dockerfile',
    'images/Dockerfile.dockerignore',
    'package.json',
    'services/a/src/a.ts',
  ])
})

await test('the digest changes with these files, and with no other', async (t) => {
  const folder = t.testdir(CHECKOUT)
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

await test('of this checkout: sources and manifests, nothing that is built', async (t) => {
  const files = inputFiles(root)
  for (const wanted of ['package-lock.json', 'operator/src/main.ts', 'bench/package.json']) {
    t.ok(files.includes(wanted), wanted)
  }
  // The two programs that run inside the build: what drives it, and checks, is in no image.
  t.same(
    files.filter((path) => path.startsWith('scripts/')),
    ['scripts/images/assemble.mjs', 'scripts/images/sbom.mjs'],
  )
  t.notOk(files.some((path) => /(^|\/)(dist|node_modules)\/|^charts\/|^e2e\/src/.test(path)))
})
