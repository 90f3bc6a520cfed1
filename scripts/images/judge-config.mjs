/** The user and group that chart and operator give to all pods. */
export const USER = '65532:65532'
const LABELS = ['title', 'description', 'source', 'version', 'revision', 'licenses', 'base.name']

/**
 * Judges the settings of an image.
 *
 * @param {{ config: object }} image - the configuration of an archive.
 * @param {{ entrypoint: string, version: string }} wanted
 * @returns {string[]} what is wrong.
 */
export function judgeConfig({ config }, { entrypoint, version }) {
  const labels = config.Labels ?? {}
  const label = (name) => labels[`org.opencontainers.image.${name}`]
  return [
    config.User === USER || `the user is ${config.User}, want ${USER}`,
    same(config.Entrypoint, [entrypoint]) ||
      `the entrypoint is ${JSON.stringify(config.Entrypoint)}, want ["${entrypoint}"]`,
    ...LABELS.map((name) => label(name) !== undefined || `the label ${name} is missing`),
    label('version') === version || `the version is ${label('version')}, want ${version}`,
    label('licenses') === 'Apache-2.0' || `the licence is ${label('licenses')}`,
    // Settings of the machine that built it.
    ...(config.Env ?? []).map(
      (line) =>
        !/^[^=]*(proxy|registry|cafile|ca_cert)[^=]*=/i.test(line) || `the environment has ${line}`,
    ),
  ].filter((fault) => fault !== true)
}

function same(one, other) {
  return JSON.stringify(one) === JSON.stringify(other)
}
