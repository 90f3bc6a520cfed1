/**
 * Where releases are published. The project has no public home yet: OWNER stands for the owner of the repository whose workflow
 * publishes them, and the pages have these addresses too. What is published has those that the workflow gives.
 */
export const HOME = {
  /** Before `/tutti/NAME` of images and `/charts/tutti`. */
  registry: 'ghcr.io/OWNER',
  /** Address of the repository. */
  source: 'https://github.com/OWNER/tutti',
}
