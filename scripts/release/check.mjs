import { SetupFailure } from '../setup/failure.mjs'

/**
 * The section of a release in CHANGELOG.md, without its heading.
 *
 * @param {{ tag: string, version: string, changelog: string }} o - `version` is package.json's, `changelog` the text of the file.
 * @throws SetupFailure if the tag is of another version, or the section is not there.
 */
export function releaseNotes({ tag, version, changelog }) {
  if (tag !== `v${version}`) {
    throw new SetupFailure(
      `tag ${tag}: package.json has version ${version}, want the tag v${version}.`,
    )
  }
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((text) => text.startsWith(`[${version}] - `))
  if (section === undefined || !/^\S+ - \d{4}-\d\d-\d\d\n/.test(section)) {
    const got = sections.map((text) => text.split('\n')[0]).slice(0, 3)
    throw new SetupFailure(
      `CHANGELOG.md: got the sections ${got.join(', ')}; want "## [${version}] - YYYY-MM-DD".`,
    )
  }
  return `${section.slice(section.indexOf('\n')).trim()}\n`
}
