// Bundles what images run from what the compiler has written: dist/main.js -> dist/bundle/main.js. Run it behind tsc -b.
import { readFileSync, rmSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { build } from 'esbuild'

const root = resolve(import.meta.dirname, '..')
const PROGRAMS = ['operator', 'services/router', 'services/step']
/** Packages with libraries of the machine, which they find beside their own files. */
const NATIVE = ['koffi', 'onnxruntime-node', 'sharp']
/** How the compiler writes an import of a `.ts` file whose name comes at run time, so that esbuild cannot see it. */
const LATE_IMPORT = /__rewriteRelativeImportExtension\((`[^`]*)\.ts`\)/g

for (const program of PROGRAMS) await bundleProgram(join(root, program, 'dist'))

/**
 * Bundles one program into few files. Node loads them in less processor time than a thousand modules, and code that no import
 * reaches takes no memory. A late import (`import()`) gets a file of its own. Names are kept, so that stacks can be read.
 */
async function bundleProgram(dist) {
  const outdir = join(dist, 'bundle')
  rmSync(outdir, { recursive: true, force: true })
  await build({
    entryPoints: [join(dist, 'main.js')],
    outdir,
    bundle: true,
    splitting: true,
    format: 'esm',
    platform: 'node',
    target: 'node24',
    minifyWhitespace: true,
    minifySyntax: true,
    external: NATIVE,
    legalComments: 'none',
    logLevel: 'warning',
    // Packages of CommonJS ask for Node's modules with it.
    banner: {
      js: "import{createRequire as _createRequire}from'node:module';const require=_createRequire(import.meta.url);",
    },
    plugins: [{ name: 'own-files', setup: (own) => keepPlaces(own, outdir) }],
  })
}

/** Lets Tutti's own modules find their neighbours (Python files, .proto files, threads) from the bundle too. */
function keepPlaces(own, outdir) {
  own.onLoad({ filter: /\/dist\/.*\.js$/, namespace: 'file' }, ({ path }) => {
    if (path.includes('/node_modules/')) return undefined
    const place = JSON.stringify(relative(outdir, path))
    const contents = readFileSync(path, 'utf8')
      .replaceAll(LATE_IMPORT, '$1.js`')
      .replaceAll('import.meta.url', `new URL(${place},import.meta.url).href`)
    if (/[^ ]__rewriteRelativeImportExtension\(/.test(contents)) {
      throw new Error(`${path} imports a module that a bundle cannot find`)
    }
    return { contents, loader: 'js' }
  })
}
