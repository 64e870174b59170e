"""A filter in place of Scrapy's set of all requests.  In settings.py:

    DUPEFILTER_CLASS = 'scrapy_dupefilter.PerhapsDupeFilter'

A request takes 6 bytes of memory.  One new request in a million is left out by mistake.  With JOBDIR
the filter is saved when the spider closes, and the next run goes on with it.
"""
import pathlib

import perhaps
from scrapy.dupefilters import RFPDupeFilter


class PerhapsDupeFilter(RFPDupeFilter):
    def __init__(self, path=None, debug=False, *, fingerprinter=None):
        super().__init__(None, debug, fingerprinter=fingerprinter)
        self.place = path and pathlib.Path(path, 'requests.perhaps')
        if self.place and self.place.exists():
            self.seen = perhaps.open(self.place, 'w')
        else:
            self.seen = perhaps.Filter(fpr=1e-6, grow=True)

    def request_seen(self, request):
        return not self.seen.add_new(self.fingerprinter.fingerprint(request))

    def close(self, reason):
        if self.place:
            self.seen.save(self.place)
