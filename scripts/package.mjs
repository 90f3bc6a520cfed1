// Makes the npm package `tutti`, tutti-VERSION.tgz, and its SBOM in a folder: npm run package -- [FOLDER] [--source URL]. Default: out.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { packageSbom } from './package/sbom.mjs'
import { stagePackage } from './package/stage.mjs'
import { HOME } from './release/home.mjs'
import { runQuietly } from './setup/child.mjs'
import { runScript } from './setup/failure.mjs'
import { findNpm } from './setup/install.mjs'

const root = resolve(import.meta.dirname, '..')

await runScript(async () => {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { source: { type: 'string', default: HOME.source } },
  })
  const [folder = join(root, 'out')] = positionals
  const out = resolve(process.env.INIT_CWD ?? process.cwd(), folder)
  mkdirSync(out, { recursive: true })
  const stage = mkdtempSync(join(tmpdir(), 'tutti-package-'))
  const startedAt = performance.now()
  console.error(`Packing tutti into ${out} ...`)
  try {
    const { name, version } = stagePackage(root, stage, values.source)
    const { command, args } = findNpm()
    const pack = ['pack', '--ignore-scripts', '--pack-destination', out]
    await runQuietly('npm pack', command, [...args, ...pack], { cwd: stage })
    writeFileSync(join(out, `${name}-${version}.cdx.json`), packageSbom(root))
    console.error(`Packed in ${Math.round((performance.now() - startedAt) / 1000)} s`)
    console.log(join(out, `${name}-${version}.tgz`))
  } finally {
    rmSync(stage, { recursive: true, force: true })
  }
  return 0
})
