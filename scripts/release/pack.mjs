import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { IMAGES } from '../images/catalogue.mjs'
import { runQuietly } from '../setup/child.mjs'
import { HOME } from './home.mjs'

/** The name of an image as values, manifests and texts have it. */
const IMAGE = new RegExp(
  `(?<=^|image://|[\\s"'\`])tutti/(?=(?:${Object.keys(IMAGES).join('|')})\\b)`,
  'gm',
)
/** Files of the chart that name images or addresses. */
const NAMING = ['Chart.yaml', 'values.yaml', 'README.md']

/**
 * @typedef {object} Release
 * @property {string} root - of the checkout.
 * @property {string} version
 * @property {string} registry - `ghcr.io/OWNER`, where images and chart are published.
 * @property {string} source - address of the repository.
 * @property {string} out - folder with the files of the release.
 */

/**
 * A text of the checkout as it is published: with images and addresses of the release.
 *
 * @param {Pick<Release, 'registry' | 'source'>} release
 */
export function published(text, { registry, source }) {
  return text
    .replace(IMAGE, `${registry}/tutti/`)
    .replaceAll(HOME.registry, registry)
    .replaceAll(HOME.source, source)
    .replaceAll(dirname(HOME.source), dirname(source))
}

/**
 * Packs the chart as it is published: its images come from the registry of the release, and the links of its README lead to the
 * repository.
 *
 * @param {Release} release
 * @param {string} helm - path of the program.
 */
export async function packChart({ root, version, registry, source, out }, helm) {
  // Beside `out`, for a rename.
  mkdirSync(out, { recursive: true })
  const stage = mkdtempSync(join(out, '.chart-'))
  const chart = join(stage, 'tutti')
  try {
    cpSync(join(root, 'charts', 'tutti'), chart, { recursive: true })
    cpSync(join(root, 'LICENSE'), join(chart, 'LICENSE'))
    for (const name of NAMING) {
      const text = published(readFileSync(join(chart, name), 'utf8'), { registry, source })
      const linked = text.replaceAll('](../../', `](${source}/blob/v${version}/`)
      writeFileSync(join(chart, name), linked)
    }
    await runQuietly('helm package', helm, ['package', chart, '--destination', stage])
    // The package of npm has the name that Helm gives.
    renameSync(join(stage, `tutti-${version}.tgz`), chartPackage({ out, version }))
  } finally {
    rmSync(stage, { recursive: true, force: true })
  }
}

/** Path of the packed chart. @param {Pick<Release, 'out' | 'version'>} release */
export function chartPackage({ out, version }) {
  return join(out, `tutti-chart-${version}.tgz`)
}

/** Writes the face system with the images of the release, for `kubectl apply -f`. @param {Release} release */
export function writeExample({ root, out, ...release }) {
  const text = readFileSync(join(root, 'examples', 'face', 'manifest.yaml'), 'utf8')
  mkdirSync(out, { recursive: true })
  writeFileSync(join(out, 'face.yaml'), published(text, release))
}
